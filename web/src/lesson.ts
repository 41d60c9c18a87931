// The lesson in, one of its pages out: diagram, three sentences, the example through this system's model, one curve.
import { barOf, drawBar, drawTheme } from "./bar";
import { chartFigure } from "./chart";
import { button, make, part, typing, unchanged } from "./dom";
import { drawDiagram } from "./diagram";
import type { Act } from "./panel";
import { readRecord, type Record } from "./record";
import { drawSheet } from "./sheet";
import type { State } from "./state";
import { openStore, type Store } from "./store";
import { tips } from "./tip";
import type { Lesson, LessonPage, WireRecord } from "./wire";

export interface LessonHands {
  readonly act: Act;
  readonly live: boolean;
  /** The live answer; none = the record that the lesson brings along. */
  readonly record: Record | null;
  readonly error: string;
  readonly busy: boolean;
}

const read = new WeakMap<WireRecord, Record>();

const HOLE = "[mask]";

/** What was typed goes with the reader from page to page, wherever it can be asked; else the page's own example. */
export function asksAbout(lesson: Lesson, page: LessonPage, state: State): string {
  const own = page.example ?? lesson.example;
  return state.say && !page.record?.picture && state.say.includes(HOLE) === own.includes(HOLE) ? state.say : own;
}

function recordOf(wire: WireRecord): Record {
  if (!read.has(wire)) read.set(wire, readRecord(wire));
  return read.get(wire)!;
}

export function startLesson(page: HTMLElement, lesson: Lesson): void {
  const store: Store = openStore((state) => draw(state), (state) => ({ ...state, tab: "lesson" }));
  const draw = (state: State): void => {
    drawTheme(state);
    drawBar(barOf(page), state, { models: [], lesson: false, title: "lesson" }, store.act);
    const shown = lesson.pages.find(({ name }) => name === state.page) ?? lesson.pages[0];
    const root = part(part(page, "main", "main"), "div", "lesson");
    if (shown) drawLesson(root, lesson, shown, state, { act: store.act, live: false, record: null, error: "", busy: false });
  };
  tips(page);
  page.addEventListener("keydown", (event) => event.key === "Escape" && store.act.clear());
  store.redraw();
}

export function drawLesson(root: HTMLElement, lesson: Lesson, page: LessonPage, state: State, hands: LessonHands): void {
  all.set(root, { lesson, page, hands });
  listen(root);
  drawContents(part(root, "nav", "contents unsaved", { "aria-label": "pages of the lesson" }), lesson, page, hands.act);
  const body = part(root, "div", "lesson-body");
  const left = part(body, "div", "lesson-left");
  const right = part(body, "div", "lesson-right");
  const own = asksAbout(lesson, page, state) === (page.example ?? lesson.example);
  const record = hands.record ?? (page.record && (!hands.live || own) ? recordOf(page.record) : null);
  drawDiagram(part(left, "figure", "diagram", { "data-picture": "diagram" }), page, page.record ? recordOf(page.record) : record);
  const words = part(right, "div", "lesson-words");
  if (!unchanged(words, page)) {
    const number = lesson.pages.indexOf(page) + 1;
    words.replaceChildren(make("p", { class: "hint" }, `${number} of ${lesson.pages.length} · ${page.name}`), make("h1", { tabindex: -1 }, page.title), ...page.sentences.map((sentence) => make("p", { class: "sentence" }, sentence)), ...measured(page));
  }
  drawExample(part(right, "section", "lesson-example", { "aria-label": "the example through this system" }), lesson, page, state, record, hands);
  drawCurve(part(right, "div", "lesson-curve"), page);
}

/** What the small model of this page has come to. */
function measured({ parameters, scores }: LessonPage): HTMLElement[] {
  const first = scores?.[0];
  if (!first || !parameters) return [];
  const interval = first.low == null || first.high == null ? "" : ` (${first.low.toFixed(1)} – ${first.high.toFixed(1)})`;
  const right = first.name === "exact" ? "held-out examples right" : "hidden characters right";
  return [make("p", { class: "hint measured" }, `its small model: ${parameters.toLocaleString("en")} parameters, ${first.value.toFixed(1)} %${interval} of the ${right}`)];
}

function drawContents(root: HTMLElement, lesson: Lesson, page: LessonPage, act: Act): void {
  if (unchanged(root, lesson, page, act)) return;
  const here = lesson.pages.indexOf(page);
  const focused = document.activeElement?.getAttribute("data-page");
  const turn = (to: LessonPage | undefined, label: string, id: string): HTMLElement =>
    button(label, { id, class: "quiet", disabled: !to }, () => to && act.set({ page: to.name, selected: null, step: null, map: null }));
  const dots = lesson.pages.map((one, i) => button(String(i + 1), { class: "page-dot", "data-page": one.name, "aria-current": one === page ? "page" : null, "aria-label": `${i + 1}: ${one.title}`, "data-tip": one.title }, () => act.set({ page: one.name, selected: null, step: null, map: null })));
  root.replaceChildren(turn(lesson.pages[here - 1], "← back", "back"), ...dots, turn(lesson.pages[here + 1], "next →", "next"));
  if (focused) root.querySelector<HTMLElement>(`[data-page="${CSS.escape(focused)}"]`)?.focus();
}

function drawExample(root: HTMLElement, lesson: Lesson, page: LessonPage, state: State, record: Record | null, hands: LessonHands): void {
  const asking = part(root, "div", "ask unsaved");
  asking.hidden = !hands.live || !!page.record?.picture;
  if (hands.live && !asking.firstChild) {
    const field = make("input", { id: "lesson-text", type: "text", dir: "auto", spellcheck: "false", autocomplete: "off", "aria-label": "text for this system" });
    field.addEventListener("input", () => all.get(root.closest<HTMLElement>(".lesson")!)!.hands.act.set({ say: field.value, selected: null }));
    asking.append(field, make("div", { class: "flight" }));
  }
  const field = asking.querySelector("input");
  const text = asksAbout(lesson, page, state);
  if (field && field.value !== text && document.activeElement !== field) field.value = text;
  asking.querySelector(".flight")?.classList.toggle("busy", hands.busy);
  const problem = part(root, "p", "problem", { role: "alert" });
  problem.textContent = hands.error;
  problem.hidden = !hands.error;
  const sheet = part(root, "section", "sheet");
  sheet.hidden = !record;
  if (record) drawSheet(sheet, { number: 0, state, record, original: record, changed: null, basis: record, selected: state.selected, live: false }, hands.act);
}

function drawCurve(root: HTMLElement, page: LessonPage): void {
  root.hidden = !page.curve;
  if (!page.curve || unchanged(root, page.curve)) return;
  const { title, x, y, series, command } = page.curve;
  const made = make("p", { class: "command" }, make("span", { class: "hint" }, "made by "), make("code", {}, command));
  root.replaceChildren(chartFigure({ title, x, y, series: series.map(({ name, points }) => ({ name, points: points.map(([x, y]) => ({ x, y })) })), dots: series.every(({ points }) => points.length < 25) }, made));
}

const all = new WeakMap<HTMLElement, { lesson: Lesson; page: LessonPage; hands: LessonHands }>();
const listening = new WeakSet<HTMLElement>();

/** Arrow keys turn the page, unless they are needed where the focus is. */
function listen(root: HTMLElement): void {
  if (listening.has(root)) return;
  listening.add(root);
  document.addEventListener("keydown", (event) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const known = all.get(root);
    if (!by || !known || event.defaultPrevented || typing(event) || event.altKey || event.metaKey || event.ctrlKey || root.hidden || !root.isConnected) return;
    if (event.target instanceof Element && event.target.closest("svg.heat, [role=listbox], .grid")) return;
    const { lesson, page, hands } = known;
    const next = lesson.pages[lesson.pages.indexOf(page) + by];
    if (!next) return;
    all.set(root, { ...known, page: next }); // two keys may come within one frame
    hands.act.set({ page: next.name, selected: null, step: null, map: null });
  });
}
