// The state and what there is to choose in, the line at the top out: models, compare, search, light and dark, save.
import { button, dress, make, part, unchanged } from "./dom";
import { savePng, saveSvg } from "./save";
import { NOTHING_CHANGED, USUAL_SAMPLING, type Sampling, type State } from "./state";
import type { Act } from "./panel";
import type { ModelCard } from "./wire";

export interface Choices {
  readonly models: readonly ModelCard[];
  readonly lesson: boolean;
  /** What is said in place of a chooser: a file holds one model. */
  readonly title?: string;
}

export function drawBar(root: HTMLElement, state: State, choices: Choices, act: Act): void {
  hands.set(root, { state, act, choices });
  if (!root.firstChild) structure(root);
  const looking = state.tab === "look";
  root.querySelector<HTMLElement>(".tabs")!.hidden = !choices.lesson || choices.models.length === 0;
  root.querySelectorAll<HTMLElement>("[data-tab]").forEach((tab) => dress(tab, { "aria-current": tab.dataset["tab"] === state.tab ? "page" : null }));
  const title = root.querySelector<HTMLElement>(".file-title")!;
  title.textContent = choices.title ?? "";
  const live = choices.models.length > 0 && looking;
  root.querySelector<HTMLElement>(".choosers")!.hidden = !live;
  const card = choices.models.find(({ name }) => name === state.models[0]);
  const writes = !!card && ["transduce", "generate", "caption"].includes(card.task);
  root.querySelector<HTMLElement>(".manner")!.hidden = !live || !writes;
  if (live) drawChoosers(root.querySelector<HTMLElement>(".choosers")!, state, choices, act);
  if (live && writes) drawManner(root.querySelector<HTMLElement>(".manner")!, state, card, act);
}

const hands = new WeakMap<HTMLElement, { state: State; act: Act; choices: Choices }>();

function structure(root: HTMLElement): void {
  const at = (): { state: State; act: Act } => hands.get(root)!;
  const tab = (name: "look" | "lesson"): HTMLElement => button(name, { "data-tab": name, class: "tab" }, () => at().act.set({ tab: name }));
  root.append(
    make("span", { class: "brand" }, "regard"),
    make("nav", { class: "tabs", "aria-label": "pages" }, tab("look"), tab("lesson")),
    make("span", { class: "file-title" }),
    make("div", { class: "choosers" }),
    make("span", { class: "space" }),
    make("details", { class: "manner menu" }, make("summary", {}), make("div", { class: "sheet-menu" })),
    make("span", { class: "icons" }, button("◐", { id: "theme", class: "icon", "aria-label": "light or dark", "data-tip": "light or dark" }, () => at().act.set({ theme: opposite() })), saveMenu()),
  );
  root.addEventListener("keydown", (event) => {
    const open = event.key === "Escape" ? (event.target as Element).closest<HTMLDetailsElement>("details[open]") : null;
    if (!open) return;
    open.open = false;
    open.querySelector("summary")?.focus();
    event.stopPropagation();
  });
  document.addEventListener("click", (event) => root.querySelectorAll<HTMLDetailsElement>("details[open]").forEach((menu) => {
    if (!menu.contains(event.target as Node)) menu.open = false;
  }));
}

function opposite(): "light" | "dark" {
  const now = document.documentElement.dataset["theme"] ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  return now === "dark" ? "light" : "dark";
}

const WHOLE = ".panels, .lesson-body, main.report, main > .sheet";

/** Each picture on the page, and the whole, in both forms. The list is made when it is opened: it says what is there. */
function saveMenu(): HTMLElement {
  const list = make("div", { class: "sheet-menu" });
  const menu = make("details", { class: "menu save" }, make("summary", { id: "save", "aria-label": "save a picture", "data-tip": "save a picture" }, "⤓"), list);
  menu.addEventListener("toggle", () => {
    if (!menu.open) return;
    const found = Array.from(document.querySelectorAll<HTMLElement>("[data-picture]")).filter((one) => one.offsetParent !== null);
    const whole = Array.from(document.querySelectorAll<HTMLElement>(WHOLE)).find((one) => one.offsetParent !== null);
    const rows = found.map((one): [string, HTMLElement] => [one.dataset["picture"]!, one]);
    if (whole) rows.push(["everything", whole]);
    list.replaceChildren(...rows.map(([name, element]) => saveRow(name, element, menu)));
  });
  return menu;
}

function saveRow(name: string, element: HTMLElement, menu: HTMLDetailsElement): HTMLElement {
  const panel = element.closest<HTMLElement>(".sheet")?.dataset["panel"];
  const of = panel && panel !== "0" ? `${name} ${Number(panel) + 1}` : name;
  const file = `regard-${of.replace(/\W+/g, "-")}`;
  const save = (kind: "svg" | "png") => (): void => {
    menu.open = false;
    if (kind === "svg") saveSvg(element, file);
    else void savePng(element, file);
  };
  return make("div", { class: "save-row" }, make("span", {}, of),
    button("SVG", { "data-save": `${of}.svg` }, save("svg")), button("PNG", { "data-save": `${of}.png` }, save("png")));
}

const FRESH: Partial<State> = { whatIf: NOTHING_CHANGED, selected: null, step: null, map: null };

function drawChoosers(root: HTMLElement, state: State, { models }: Choices, act: Act): void {
  if (unchanged(root, models, state.models, act)) return;
  const focused = document.activeElement?.id;
  const chooser = (name: string, place: number): HTMLElement => {
    const select = make("select", { id: place ? `model-${place}` : "model", "aria-label": place ? `model ${place + 1}` : "model" });
    for (const card of models) select.append(make("option", { value: card.name, selected: card.name === name }, `${card.name} · ${card.preset}`));
    select.addEventListener("change", () => act.set({ ...FRESH, models: state.models.map((one, i) => (i === place ? select.value : one)) }));
    const drop = button("×", { class: "icon", "aria-label": `no longer compare ${name}`, "data-drop": place }, () => act.set({ ...FRESH, models: state.models.filter((_, i) => i !== place) }));
    return make("span", { class: "chooser" }, select, state.models.length > 1 ? drop : null);
  };
  const first = models.find(({ name }) => name === state.models[0]);
  const other = models.find(({ name, task }) => task === first?.task && !state.models.includes(name)) ?? models.find(({ name }) => !state.models.includes(name));
  const add = button("+ compare", { id: "compare", class: "quiet", hidden: !other }, () => act.set({ ...FRESH, models: [...state.models, other!.name] }));
  root.replaceChildren(...state.models.map(chooser), add);
  if (focused && focused !== "text") document.getElementById(focused)?.focus();
}

const WIDTHS = [1, 2, 3, 5, 10];

/** How the output is searched for: a beam of some width, or drawn by chance. */
function drawManner(root: HTMLElement, state: State, card: ModelCard, act: Act): void {
  const width = state.beam || card.beam;
  const said = state.sample ? `sampling T ${state.sample.temperature}` : width === 1 ? "greedy" : `beam ${width}`;
  const summary = root.querySelector("summary")!;
  if (summary.textContent !== `${said} ▾`) summary.textContent = `${said} ▾`;
  const sheet = root.querySelector<HTMLElement>(".sheet-menu")!;
  if (unchanged(sheet, state.beam, state.sample, card)) return;
  const focused = document.activeElement?.id;
  const widths = make("select", { id: "beam", "aria-label": "beam width" });
  for (const one of [...new Set([...WIDTHS, width])].sort((a, b) => a - b)) widths.append(make("option", { value: one, selected: one === width }, one === 1 ? "1 (greedy)" : String(one)));
  widths.addEventListener("change", () => act.set({ beam: Number(widths.value), sample: null }));
  const chance = make("input", { id: "sampling", type: "checkbox", checked: state.sample !== null });
  chance.addEventListener("change", () => act.set({ sample: chance.checked ? USUAL_SAMPLING : null }));
  sheet.replaceChildren(make("label", {}, "beam", widths), make("label", {}, "draw by chance", chance), ...(state.sample ? samplingFields(state.sample, act) : []));
  if (focused) document.getElementById(focused)?.focus();
}

function samplingFields(sample: Sampling, act: Act): HTMLElement[] {
  const field = (name: keyof Sampling, label: string, limits: { min: number; max: number; step: number }): HTMLElement => {
    const input = make("input", { id: `sample-${name}`, type: "number", value: sample[name], ...limits });
    input.addEventListener("change", () => {
      const value = Number(input.value);
      if (Number.isFinite(value) && value >= limits.min && value <= limits.max) act.set({ sample: { ...sample, [name]: value } });
    });
    return make("label", {}, label, input);
  };
  return [
    field("temperature", "temperature", { min: 0.05, max: 5, step: 0.05 }), field("top_k", "of the best k (0: all)", { min: 0, max: 1000, step: 1 }),
    field("top_p", "of probability p", { min: 0.01, max: 1, step: 0.01 }), field("seed", "seed", { min: 0, max: 2 ** 31, step: 1 }),
  ];
}

/** Puts the theme on the page; part of drawing, since the state says it. */
export function drawTheme(state: State): void {
  if (state.theme) document.documentElement.dataset["theme"] = state.theme;
  else delete document.documentElement.dataset["theme"];
}

export function barOf(page: HTMLElement): HTMLElement {
  return part(page, "header", "bar unsaved");
}
