// A panel in, its answer in the form of its task out: bars of classes, labels under words, holes filled, a piece marked,
// the words that carry a vector.
import { dress, figure, make, part, unchanged } from "./dom";
import { inked, most } from "./hits";
import type { Act, Panel } from "./panel";
import type { Record } from "./record";

/** Tasks whose answer is not a text that is written token by token. */
export const OWN_FORM: ReadonlySet<string> = new Set(["classify", "tag", "fill", "extract", "embed"]);

export function drawAnswer(root: HTMLElement, panel: Panel, act: Act): void {
  const { record, selected } = panel;
  root.hidden = !OWN_FORM.has(record.model.task) || (record.model.task === "embed" && !record.carried?.length);
  if (root.hidden) return;
  const body = part(root, "div", "answer-body", { dir: "auto" });
  dress(body, { id: panel.number === 0 ? "answer" : null });
  if (!unchanged(body, record, panel.changed)) {
    const before = panel.changed && record === panel.changed ? panel.original : null;
    body.replaceChildren(...forms[record.model.task]!(record, before));
  }
  acts.set(body, { panel, act });
  listen(body);
  const chosen = selected?.side === "target" ? selected.index : -1;
  const stands = selected?.side === "source" ? selected.index : -1;
  body.querySelectorAll<HTMLElement>("[data-target]").forEach((one) => {
    const index = Number(one.dataset["target"]);
    const place = record.at?.[index];
    one.classList.toggle("chosen", index === chosen || (!!place && place[0] <= stands && stands <= place[1]));
  });
}

type Form = (record: Record, before: Record | null) => Node[];

const forms: { readonly [task: string]: Form } = { classify: bars, tag: labelled, fill: filled, extract: piece, embed: carrying };

const SHOWN_CLASSES = 12;

function bars(record: Record, before: Record | null): Node[] {
  const chances = [...record.chances].sort((a, b) => b[1] - a[1]);
  const list = make("ol", { class: "choices classes", "aria-label": "classes by probability" });
  for (const [label, chance] of chances.slice(0, SHOWN_CLASSES)) {
    const level = make("span", { class: "level" });
    level.style.width = `${(100 * chance).toFixed(2)}%`;
    const was = before?.chances.find(([name]) => name === label)?.[1];
    const moved = was !== undefined && Math.abs(was - chance) > 0.0005 ? make("span", { class: "moved" }, ` was ${figure(was)}`) : null;
    const row = make("div", { class: label === record.target.text ? "choice chosen" : "choice", "data-class": label, "data-probability": chance },
      make("span", { class: "name", dir: "auto" }, label), make("span", { class: "track" }, level),
      make("span", { class: "value" }, figure(chance), moved));
    list.append(make("li", {}, row));
  }
  const rest = chances.length - SHOWN_CLASSES;
  return rest > 0 ? [list, make("p", { class: "hint" }, `and ${rest} more`)] : [list];
}

/** The text in stretches: what target token stands over it, or none. */
function stretches(record: Record): { text: string; target: number }[] {
  const { text, tokens } = record.source;
  const found: { text: string; target: number }[] = [];
  let reached = 0;
  const order = (record.at ?? []).map((place, target) => ({ place, target })).sort((a, b) => a.place[0] - b.place[0]);
  for (const { place, target } of order) {
    const start = Math.max(reached, tokens[place[0]]?.start ?? reached);
    const end = Math.max(start, tokens[place[1]]?.end ?? start);
    if (start > reached) found.push({ text: text.slice(reached, start), target: -1 });
    found.push({ text: text.slice(start, end), target });
    reached = end;
  }
  if (reached < text.length) found.push({ text: text.slice(reached), target: -1 });
  return found;
}

function plain(text: string): Node {
  return make("span", { class: "plain" }, text.replace(/\t/g, " ⇥ "));
}

function labelled(record: Record, before: Record | null): Node[] {
  return stretches(record).map(({ text, target }) => {
    if (target < 0) return plain(text);
    const label = record.target.tokens[target]?.text ?? "";
    const chance = record.probabilities[target] ?? 0;
    const outside = /^O$|^_$/.test(label);
    const differs = before && before.target.tokens[target]?.text !== label;
    const word = make("button", { type: "button", class: `tagged${outside ? " outside" : ""}${differs ? " differs" : ""}`, "data-target": target, "data-probability": chance, "aria-label": `${text.trim()}: ${label}, probability ${figure(chance)}` },
      make("span", { class: "word" }, text.trim()), make("span", { class: "tag" }, label));
    word.style.setProperty("--sure", chance.toFixed(3));
    return word;
  });
}

function filled(record: Record, before: Record | null): Node[] {
  return stretches(record).map(({ text, target }) => {
    if (target < 0) return plain(text);
    const chance = record.probabilities[target] ?? 0;
    const word = record.target.tokens[target]?.text ?? "";
    const differs = before && before.target.tokens[target]?.text !== word;
    return make("button", { type: "button", class: `hole${differs ? " differs" : ""}`, "data-target": target, "data-probability": chance, "aria-label": `hole filled with ${word}, probability ${figure(chance)}` }, word.trim());
  });
}

function piece(record: Record): Node[] {
  const { text, tokens } = record.source;
  const first = record.at?.[0]?.[0];
  const last = record.at?.[(record.at?.length ?? 1) - 1]?.[1];
  if (first === undefined || last === undefined) return [plain(text), make("p", { class: "hint" }, "no piece was found")];
  const [start, end] = [tokens[first]?.start ?? 0, tokens[last]?.end ?? 0];
  const before = text.slice(0, start).split("\t");
  const after = text.slice(end).split("\t");
  const asked = (column: string): Node => make("p", { class: "question" }, column);
  const passage = make("p", { class: "passage" }, before.at(-1)!, make("mark", { class: "piece", "data-target": 0 }, text.slice(start, end)), after[0]!);
  return [...before.slice(0, -1).map(asked), passage, ...after.slice(1).map(asked)];
}

function carrying({ source, carried }: Record): Node[] {
  const words = carried ?? [];
  return [make("p", { class: "hint" }, "the words that carry its vector: the more ink, the farther it moves without the word"),
    make("p", { class: "carrying" }, ...inked(source.text, words, most(words), "of the vector: 1 − the cosine with the one without it"))];
}

const acts = new WeakMap<HTMLElement, { panel: Panel; act: Act }>();
const listening = new WeakSet<HTMLElement>();

function listen(body: HTMLElement): void {
  if (listening.has(body)) return;
  listening.add(body);
  const pick = (event: Event, how: "over" | "focus" | "pin"): void => {
    const found = (event.target as Element).closest<HTMLElement>("[data-target]");
    const { panel, act } = acts.get(body)!;
    if (found) act.select({ panel: panel.number, side: "target", index: Number(found.dataset["target"]), role: "query", across: null }, how);
  };
  body.addEventListener("pointerover", (event) => event.pointerType === "mouse" && pick(event, "over"));
  body.addEventListener("focusin", (event) => (event.target as HTMLElement).matches(":focus-visible") && pick(event, "focus"));
  body.addEventListener("pointerleave", () => acts.get(body)?.act.leave());
  body.addEventListener("click", (event) => pick(event, "pin"));
}
