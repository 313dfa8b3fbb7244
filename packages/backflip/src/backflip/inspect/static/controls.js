// Maps the keys held to an action, and draws the legend, whose buttons and sliders also work.

const SIGNS = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", " ": "space" };

/** Ignores Shift: a letter may be pressed with Shift and released without. */
export const folded = (key) => (key.length === 1 ? key.toLowerCase() : key);

export class Controls {
  /**
   * @param game the facts of the game from the server
   * @param legend the element that lists the actions
   * @param pressed called after a key or button was pressed
   */
  constructor(game, legend, pressed) {
    this.actions = game.actions;
    this.dials = game.dials;
    this.pressed = pressed;
    this.held = new Set();
    this.tapped = new Set(); // pressed since the last env step, even if already released
    this.last = 0;
    this.known = new Set(this.actions ? this.actionKeys() : this.dials.flatMap((dial) => dial.keys));
    legend.replaceChildren(...(this.actions ? this.actionButtons() : this.sliders()));
  }

  actionKeys() {
    return this.actions.flatMap((action) => [...(action.keys ?? []), action.digit].filter(Boolean));
  }

  /** Registers a key; returns whether it is bound. */
  press(named, repeated = false) {
    const key = folded(named);
    if (!this.known.has(key)) return false;
    this.held.add(key);
    if (!repeated) {
      this.tapped.add(key);
      this.pressed();
    }
    return true;
  }

  release(key) {
    this.held.delete(folded(key));
  }

  forget() {
    this.held.clear();
    this.tapped.clear();
  }

  /** Returns the action to send for the next env step. */
  action() {
    const keys = new Set([...this.held, ...this.tapped]);
    this.tapped.clear();
    return this.actions ? { action: this.chosen(keys) } : { actions: this.dialled(keys) };
  }

  /** The action of a digit held; else of the most keys held; else the idle action. */
  chosen(keys) {
    const digit = this.actions.findIndex((action) => keys.has(action.digit) || keys.has(`#${action.name}`));
    if (digit >= 0) return (this.last = digit);
    let best = -1;
    this.actions.forEach(({ keys: needed }, index) => {
      if (!needed?.length || !needed.every((key) => keys.has(key))) return;
      if (best < 0 || needed.length > this.actions[best].keys.length) best = index;
    });
    if (best >= 0) return (this.last = best);
    const idle = this.idle();
    return idle >= 0 ? idle : this.last;
  }

  idle() {
    return this.actions.findIndex((action) => action.keys?.length === 0);
  }

  idleText() {
    if (!this.actions) return "No key held: the sliders set the action.";
    const idle = this.idle();
    return idle >= 0
      ? `No key held: ${this.actions[idle].name}.`
      : "No key held: the last action is repeated.";
  }

  dialled(keys) {
    return this.dials.map((dial, index) => {
      const slider = Number(this.inputs[index].value);
      const [low, high] = dial.keys.map((key) => keys.has(key));
      const value = low === high ? slider : low ? dial.low : dial.high;
      this.outputs[index].value = value.toFixed(2);
      return value;
    });
  }

  actionButtons() {
    return this.actions.map((action, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "action";
      const signs = [action.digit, (action.keys ?? []).map((key) => SIGNS[key] ?? key).join(" + ")];
      for (const sign of signs.filter(Boolean)) {
        const key = document.createElement("kbd");
        key.textContent = sign;
        button.append(key, " ");
      }
      button.append(action.name);
      const name = `#${action.name}`;
      this.known.add(name);
      button.addEventListener("pointerdown", () => this.press(name));
      for (const end of ["pointerup", "pointerleave"]) button.addEventListener(end, () => this.release(name));
      button.addEventListener("click", (event) => {
        button.blur();
        if (event.detail === 0) this.press(name), this.release(name); // clicked with the keyboard
      });
      button.dataset.action = index;
      return button;
    });
  }

  sliders() {
    this.inputs = [];
    this.outputs = [];
    return this.dials.map((dial) => {
      const label = document.createElement("label");
      label.className = "dial";
      const input = document.createElement("input");
      const output = document.createElement("output");
      Object.assign(input, { type: "range", min: dial.low, max: dial.high, step: (dial.high - dial.low) / 200 });
      input.value = (dial.low + dial.high) / 2;
      input.addEventListener("change", () => this.pressed());
      input.addEventListener("pointerup", () => input.blur()); // so that the arrow keys stop moving it
      output.value = Number(input.value).toFixed(2);
      const keys = dial.keys.map((key) => SIGNS[key] ?? key).join(" ");
      label.append(`${dial.name} ${keys}`, input, output);
      this.inputs.push(input);
      this.outputs.push(output);
      return label;
    });
  }
}
