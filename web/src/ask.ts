// The state and the model in, the place to type out; a picture is dropped or chosen where the model reads pictures.
import { button, make, part, unchanged } from "./dom";
import { NOTHING_CHANGED, type State } from "./state";
import type { Act } from "./panel";
import { quoted } from "./record";
import type { ModelCard } from "./wire";

export interface AskHands {
  readonly act: Act;
  picture(data: string, name: string): void;
}

export function drawAsk(root: HTMLElement, state: State, card: ModelCard | null, busy: boolean, hands: AskHands): void {
  all.set(root, { state, hands });
  const columns = Math.max(1, card?.columns ?? 1);
  const reads = card?.reads ?? "text";
  const fields = part(root, "div", "fields");
  const names = namesOf(card);
  if (!unchanged(fields, reads, names.join("\t"))) fields.replaceChildren(...(reads === "picture" ? [dropZone(root)] : inputs(root, names)));
  const flight = part(root, "div", "flight", { role: "progressbar", "aria-label": "an answer is being computed" });
  flight.classList.toggle("busy", busy);
  const parts = state.text.split("\t");
  fields.querySelectorAll<HTMLTextAreaElement>("textarea").forEach((field, i) => {
    const value = i === columns - 1 ? parts.slice(i).join("\t") : parts[i] ?? "";
    if (field.value !== value) field.value = value;
    grow(field);
  });
  const examples = part(root, "div", "examples");
  if (!unchanged(examples, card)) drawExamples(examples, root, card);
}

const all = new WeakMap<HTMLElement, { state: State; hands: AskHands }>();

/** A new text leaves nothing of what was done to the old one. */
export function fresh(text: string): Partial<State> {
  return { text, whatIf: NOTHING_CHANGED, selected: null, step: null };
}

/** What the columns of the text are called: as in the file that the model learnt from, or by their numbers. */
export function namesOf(card: ModelCard | null): string[] {
  return Array.from({ length: Math.max(1, card?.columns ?? 1) }, (_, i) => card?.names?.[i] || `column ${i + 1}`);
}

function inputs(root: HTMLElement, names: readonly string[]): HTMLElement[] {
  const one = names.length === 1;
  const fields = names.map((name, i) =>
    make("textarea", { id: i ? `text-${i}` : "text", rows: 1, dir: "auto", spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-label": one ? "text" : name, placeholder: one ? "type here" : name }));
  fields.forEach((field) => {
    field.addEventListener("input", () => {
      const typed = fields.map((one) => one.value.replace(/\n/g, " "));
      all.get(root)!.hands.act.set(fresh(typed.join("\t")));
    });
    field.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  });
  return one ? fields : fields.map((field, i) => make("label", { class: "column" }, make("span", { class: "hint" }, names[i]!), field));
}

function grow(field: HTMLTextAreaElement): void {
  if (unchanged(field, field.value, field.clientWidth)) return;
  field.style.height = "auto";
  const tall = field.scrollHeight + 2;
  field.style.height = `${tall}px`;
  field.classList.toggle("long", field.clientHeight + 2 < tall); // the style says how tall it may be
}

function drawExamples(place: HTMLElement, root: HTMLElement, card: ModelCard | null): void {
  const texts = card?.reads === "picture" ? [] : card?.examples ?? [];
  place.replaceChildren(...texts.map((text) =>
    button(text.replace(/\t/g, " ⇥ "), { class: "example", dir: "auto", "data-example": text }, () => all.get(root)!.hands.act.set(fresh(text)))));
}

const READ = ["image/png", "image/jpeg"]; // what the server can read

function dropZone(root: HTMLElement): HTMLElement {
  const file = make("input", { id: "picture", type: "file", accept: READ.join(","), class: "unseen" });
  const problem = make("span", { class: "problem", role: "alert" });
  const zone = make("label", { class: "drop" }, file, make("span", {}, "drop a picture here, or "), make("u", {}, "choose one"), problem);
  const take = (chosen: File | undefined): void => {
    if (!chosen) return;
    const read = READ.includes(chosen.type);
    problem.textContent = read ? "" : `${quoted(chosen.name)} is not a PNG or JPEG picture`;
    if (!read) return;
    const reader = new FileReader();
    reader.addEventListener("load", () => all.get(root)!.hands.picture(String(reader.result), chosen.name));
    reader.readAsDataURL(chosen);
  };
  file.addEventListener("change", () => take(file.files?.[0]));
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer?.files[0]);
  });
  return zone;
}
