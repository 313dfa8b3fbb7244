// Fields that are edited in place.

/** Makes a field editable in place: Enter or leaving it saves the text, Escape restores it. */
export function editable(field, saved, save) {
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") field.value = saved();
    if (event.key === "Escape" || (event.key === "Enter" && !event.isComposing)) {
      event.preventDefault();
      field.blur();
    }
  });
  field.addEventListener("blur", () => {
    if (field.value !== saved()) save(field.value);
  });
}
