// A panel in, all its views in their order out.
import { counted, dress, figure, make, part, unchanged } from "./dom";
import { drawAnswer } from "./answers";
import { drawHeads } from "./heads";
import { drawHeat } from "./heat";
import { agreementSentence, lensOf } from "./lens";
import type { Act, Panel } from "./panel";
import { drawPicture } from "./picture";
import type { Record } from "./record";
import { drawSteps } from "./steps";
import { drawThreads } from "./threads";
import { VIEWS, type View } from "./state";

export function drawSheet(root: HTMLElement, panel: Panel, act: Act): void {
  dress(root, { class: "sheet", "data-panel": panel.number });
  drawHeading(part(root, "div", "heading"), panel);
  drawPicture(part(root, "figure", "caption"), panel, act);
  drawAnswer(part(root, "figure", "answer"), panel, act);
  const lines = part(root, "figure", "lines", { "data-picture": "lines" });
  drawThreads(lines, panel, act);
  lines.hidden = !!panel.record.carried?.length && panel.record.maps.length === 0; // the text stands above, with what it carries
  drawViews(part(root, "div", "views"), panel, act);
  const maps = part(root, "div", "maps");
  const nothing = lensOf(panel.record, panel.state) === null;
  maps.hidden = nothing && panel.record.maps.length === 0;
  const heat = part(maps, "figure", "heatmap", { "data-picture": "heat map" });
  heat.hidden = nothing;
  drawHeat(heat, panel, act);
  drawHeads(part(maps, "figure", "heads", { "data-picture": "heads" }), panel, act);
  drawSteps(part(root, "figure", "steps", { "data-picture": "steps" }), panel, act);
}

function drawHeading(root: HTMLElement, panel: Panel): void {
  const { record } = panel;
  if (unchanged(root, record, panel.changed)) return;
  const { name, task, preset, parameters } = record.model;
  const milliseconds = 1000 * Object.values(record.seconds ?? {}).reduce((sum, part) => sum + part, 0);
  const facts = [preset, task, `${counted(parameters)} parameters`, milliseconds ? `${milliseconds.toFixed(0)} ms` : ""];
  const changed = record === panel.changed ? make("span", { class: "changed-badge" }, "changed") : null;
  root.replaceChildren(
    make("h2", {}, name),
    make("span", { class: "hint" }, facts.filter(Boolean).join(" · ")),
    ...(changed ? [changed] : []),
    make("span", { class: "confidence", "data-confidence": record.confidence, ...sureness(record) }, sure(record)),
  );
}

/** Of an answer, how sure it is; a text that only goes on is not right or wrong, so of that, how likely its tokens were. */
function sure({ model: { task }, confidence, probabilities }: Record): string {
  if (task === "embed") return "";
  if (task !== "generate") return `confidence ${figure(confidence)}`;
  const logs = probabilities.reduce((sum, one) => sum + Math.log(Math.max(1e-30, one)), 0);
  return probabilities.length ? `probability a token ${figure(Math.exp(logs / probabilities.length))}` : "";
}

function sureness({ model: { task } }: Record): { "data-tip"?: string } {
  return task === "generate" ? { "data-tip": "the geometric mean over the tokens that were written" } : {};
}

/** Attention and the views that question it, with the sentence that says how far they agree. */
function drawViews(root: HTMLElement, panel: Panel, act: Act): void {
  const { record, state } = panel;
  hands.set(root, act);
  const choice = part(root, "div", "segments unsaved", { role: "radiogroup", "aria-label": "what the lines show" });
  if (!choice.firstChild) choice.append(...VIEWS.map((view) => viewButton(view, root)));
  const possible = (view: View): boolean => {
    if (view === "attention") return record.maps.length > 0;
    if (record.derived) return view !== "rollout" ? record.derived[view].rows > 0 : record.derived.rollout !== null;
    return panel.live && record.target.tokens.length > 0;
  };
  choice.querySelectorAll<HTMLButtonElement>("button").forEach((one) => {
    const view = one.dataset["view"] as View;
    dress(one, { "aria-checked": String(view === state.view), tabindex: view === state.view ? 0 : -1, disabled: !possible(view) && view !== state.view });
  });
  const said = sentence(panel);
  const place = part(root, "p", "agreement", { role: "note" });
  if (place.textContent !== said) place.textContent = said;
  root.hidden = !VIEWS.some((view) => possible(view)) && said === "";
}

const hands = new WeakMap<HTMLElement, Act>();

function viewButton(view: View, root: HTMLElement): HTMLElement {
  const made = make("button", { type: "button", role: "radio", "data-view": view }, view);
  made.addEventListener("click", () => hands.get(root)?.set({ view }));
  made.addEventListener("keydown", (event) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    event.preventDefault();
    const all = Array.from(made.parentElement!.querySelectorAll<HTMLButtonElement>("button:not(:disabled)"));
    const next = all[(all.indexOf(made) + by + all.length) % all.length]!;
    next.click();
    next.focus();
  });
  return made;
}

function sentence(panel: Panel): string {
  const { record, state } = panel;
  if (state.view !== "attention" && !lensOf(record, state)) {
    if (record.derived) return `${state.view} says nothing of this model`;
    return panel.live ? `${state.view} is being computed …` : `${state.view} was not computed for this record`;
  }
  if (record.maps.length === 0 && record.target.tokens.length > 0 && state.view === "attention")
    return record.structure === "pair" && !record.picture
      ? "no attention: everything went through one vector; erasure and gradient still show what counted"
      : "no attention: what was read went on from step to step; erasure and gradient still show what counted";
  return agreementSentence(record);
}
