// The form of the page of notes. A note is on disk before the page says so.

const TIMEOUT = 15000; // milliseconds

/** Sends a new note when the form is submitted, then shows the page again, with the note. */
export function sendNotes() {
  const form = document.getElementById("note");
  if (!form) return;
  const error = document.getElementById("note-error");
  form.hidden = false;
  form.elements.text.focus();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    error.textContent = "";
    form.elements.send.disabled = true;
    try {
      const response = await fetch("/notes", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Token": form.dataset.token },
        body: JSON.stringify(Object.fromEntries(["log", "text", "run"].map((name) => [name, form.elements[name].value]))),
        signal: AbortSignal.timeout(TIMEOUT),
      });
      const fields = await response.json();
      if (!response.ok) throw new Error(fields.error);
      form.elements.text.value = "";
      location.reload();
    } catch (problem) {
      error.textContent = `The note is not written: ${problem.message}`;
    } finally {
      form.elements.send.disabled = false;
    }
  });
  form.elements.text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}
