// A server in, the page out that answers as one types: each model has a slot for its answer, one for the changed one.
import { noSuchModels, noSuchPicture, notThere, notUnderstood } from "./address";
import { drawAsk, fresh, namesOf } from "./ask";
import { barOf, drawBar, drawTheme } from "./bar";
import { beginningIn, editedWish, erasedIn, offIn } from "./changes";
import { lesson as askLesson, look, models as askModels, search, type LookWish } from "./client";
import { dress, make, part } from "./dom";
import { drawSearch } from "./hits";
import { asksAbout, drawLesson } from "./lesson";
import { originalIndex, tokensIn, translated, type Act, type Panel } from "./panel";
import { quoted, readRecord, wordAround, type Record } from "./record";
import { drawSheet } from "./sheet";
import { ask, empty, slot, type Slot } from "./slot";
import { changesAnything, NOTHING_CHANGED, type State, type WhatIf } from "./state";
import { openStore, type Store } from "./store";
import { tips } from "./tip";
import { drawWhatIf, erasable } from "./whatif";
import type { Hit, Lesson, ModelCard } from "./wire";

const TYPING = 140; // milliseconds of rest before an answer is asked for
const REST = 450; // and before what costs more
const SHORT = 80; // source tokens up to which the costly views are made without being asked for

interface Slots {
  readonly original: Slot<Record>;
  /** The text with words replaced and nothing erased yet: by its tokens, what is erased has numbers. */
  readonly edited: Slot<Record>;
  readonly changed: Slot<Record>;
  readonly derived: Slot<null>;
  readonly changedDerived: Slot<null>;
}

interface Table {
  readonly page: HTMLElement;
  readonly cards: readonly ModelCard[];
  /** Whether the server has a lesson at all. */
  readonly taught: boolean;
  readonly lesson: Slot<Lesson>;
  readonly slots: Slots[];
  readonly hits: Slot<Hit[]>;
  readonly past: WhatIf[];
  /** What the address named and is not here; said until something else is asked for. */
  complaints: string[];
  picture: { data: string; name: string; number: number } | null;
  store: Store;
}

export async function startLive(page: HTMLElement): Promise<void> {
  const { models: cards, lesson: taught } = await askModels();
  const table: Table = { page, cards, taught, lesson: slot(), slots: [], hits: slot(), past: [], complaints: [], picture: null, store: undefined as unknown as Store };
  table.store = openStore((state) => draw(table, state), (state) => {
    const first = begun(state, cards, taught);
    table.complaints = [...noSuchModels(state.models.filter((name) => !first.models.includes(name)), first.models[0] ?? ""), ...notUnderstood(location.hash)];
    return first;
  });
  const plain = table.store.act;
  const act: Act = { ...plain, set: (change) => {
    if (change.whatIf && change.whatIf !== NOTHING_CHANGED) table.past.push(table.store.state().whatIf);
    if (change.whatIf === NOTHING_CHANGED) table.past.length = 0;
    if (change.models || change.text !== undefined || change.picture !== undefined || change.tab || change.page !== undefined) table.complaints = [];
    plain.set(renumbers(change, table.store.state()) ? { selected: null, ...change } : change);
  } };
  table.store = { ...table.store, act };
  tips(page);
  page.addEventListener("keydown", (event) => keys(table, event));
  table.store.redraw();
}

/** Without what was erased, the tokens of the run on show are counted anew: what was chosen would be another one. */
function renumbers(change: Partial<State>, now: State): boolean {
  const erased = change.whatIf !== undefined && change.whatIf.erase.join() !== now.whatIf.erase.join();
  const turned = change.show !== undefined && change.show !== now.show && now.whatIf.erase.length + now.whatIf.replace.length > 0;
  return erased || turned || (change.whatIf !== undefined && JSON.stringify(change.whatIf.replace) !== JSON.stringify(now.whatIf.replace));
}

/** What an address leaves open: the first model, and its first example. */
function begun(state: State, cards: readonly ModelCard[], taught: boolean): State {
  const known = state.models.filter((name) => cards.some((card) => card.name === name));
  const models = known.length ? known : cards.slice(0, 1).map(({ name }) => name);
  const first = cards.find(({ name }) => name === models[0]);
  return { ...state, models, tab: taught ? (cards.length ? state.tab : "lesson") : "look", text: state.text || (first?.reads === "text" ? first.examples[0] ?? "" : "") };
}

function keys(table: Table, event: KeyboardEvent): void {
  if (event.key === "Escape" && !event.defaultPrevented) table.store.act.clear();
  const span = event.target instanceof HTMLElement ? event.target : null;
  const token = span?.dataset["token"];
  const index = token?.startsWith("source-") ? Number(token.slice(7)) : -1;
  if (index < 0 || (event.key !== "Delete" && event.key !== "Backspace")) return;
  event.preventDefault();
  const { whatIf } = table.store.state();
  const panels = panelsOf(table, table.store.state());
  const panel = panels.find(({ number }) => String(number) === span!.closest<HTMLElement>("[data-panel]")?.dataset["panel"]);
  const tokens = panel && panels[0]?.number === 0 ? erasedBy(panel, index, event.shiftKey, panels[0].original) : [];
  if (tokens.length) table.store.act.set({ whatIf: { ...whatIf, erase: [...new Set([...whatIf.erase, ...tokens])] }, show: "changed" });
}

/** The tokens of the first model that stand where a token, or its word, stands in the run on show. */
function erasedBy(panel: Panel, index: number, word: boolean, first: Record): number[] {
  const { source, picture } = panel.original;
  const place = originalIndex(panel, index);
  if (picture || !erasable(source.tokens[place])) return [];
  const tokens = word ? wordAround(source, place).tokens : [place];
  return panel.number === 0 ? tokens : tokensIn(first.source, tokens.map((one) => [source.tokens[one]!.start, source.tokens[one]!.end]));
}

function draw(table: Table, state: State): void {
  drawTheme(state);
  const { page, cards, store } = table;
  drawBar(barOf(page), state, { models: cards, lesson: table.taught }, store.act);
  const main = part(page, "main", "main");
  main.dataset["tab"] = state.tab;
  const looking = part(main, "div", "look");
  const learning = part(main, "div", "lesson");
  looking.hidden = state.tab !== "look";
  learning.hidden = state.tab !== "lesson";
  const line = part(page, "div", "what-if unsaved", { id: "what-if" });
  if (state.tab === "lesson") {
    line.hidden = true;
    return openLesson(table, learning, state);
  }
  drawLook(table, looking, line, state);
}

function drawLook(table: Table, looking: HTMLElement, line: HTMLElement, state: State): void {
  const { cards, store } = table;
  const names = state.models;
  names.forEach((name, i) => wishFor(table, i, name, state));
  table.slots.slice(names.length).forEach(clearSlots);
  const card = cards.find(({ name }) => name === names[0]) ?? null;
  const busy = table.slots.some((slots) => slots.original.busy || slots.edited.busy || slots.changed.busy || slots.derived.busy);
  drawAsk(part(looking, "div", "ask unsaved"), state, card, busy, { act: store.act, picture: (data, name) => choosePicture(table, data, name) });
  const panels = panelsOf(table, state);
  const lost = card?.reads === "picture" && state.picture && !pictureOf(table, state) ? [noSuchPicture(state.picture)] : [];
  const records = names.map((_, place) => panels.find(({ number }) => number === place)?.original);
  drawNotice(part(looking, "p", "notice unsaved", { role: "status" }), [...table.complaints, ...lost, ...(records.every(Boolean) ? notThere(state, records) : [])]);
  drawPanels(part(looking, "div", "panels"), table, panels, state);
  const searching = part(looking, "section", "search");
  searching.hidden = card?.task !== "embed";
  if (card?.task === "embed") drawHits(table, searching, card.name, state);
  drawWhatIf(line, panels, state, { act: store.act, undo: () => undo(table) });
}

/** The picture that the address speaks of; null = it has to be chosen, or chosen again. */
function pictureOf(table: Table, state: State): Table["picture"] {
  return table.picture?.name === state.picture ? table.picture : null;
}

/** What an address says of a picture waits for it; another picture leaves nothing of what was done to the last. */
function choosePicture(table: Table, data: string, name: string): void {
  const state = table.store.state();
  const awaited = state.picture === name && !pictureOf(table, state);
  table.picture = { data, name, number: (table.picture?.number ?? 0) + 1 };
  table.store.act.set(awaited ? {} : { ...fresh(state.text), picture: name });
}

function drawNotice(place: HTMLElement, said: readonly string[]): void {
  const text = said.slice(0, 5).join(" ");
  if (place.textContent !== text) place.textContent = text;
  place.hidden = text === "";
}

function undo(table: Table): void {
  const before = table.past.pop() ?? NOTHING_CHANGED;
  table.store.act.set({ whatIf: before });
  if (before !== NOTHING_CHANGED) table.past.pop(); // the way back is not itself a step
}

function slotsOf(table: Table, place: number): Slots {
  return (table.slots[place] ??= { original: slot(), edited: slot(), changed: slot(), derived: slot(), changedDerived: slot() });
}

function clearSlots(slots: Slots): void {
  Object.values(slots).forEach((one) => empty(one as Slot<unknown>));
}

/** What is to be asked for one model; nothing where there is nothing to ask about. */
function wish(table: Table, name: string, state: State): LookWish | null {
  const card = table.cards.find((one) => one.name === name);
  if (card?.reads === "picture") {
    const picture = pictureOf(table, state);
    return picture && { text: picture.name, picture: picture.data, model: name, packed: true, ...manner(state, card) };
  }
  if (!state.text.trim()) return null;
  if (missing(card, state).length) return null;
  const text = card && card.columns > 1 ? state.text.split("\t") : state.text;
  return { text, model: name, packed: true, ...manner(state, card) };
}

/** The columns that nothing is written in yet, by name; a model of one column has none. */
function missing(card: ModelCard | undefined, state: State): string[] {
  const parts = state.text.split("\t");
  return card && card.columns > 1 ? namesOf(card).filter((_, i) => !parts[i]?.trim()) : [];
}

function manner(state: State, card: ModelCard | undefined): Partial<LookWish> {
  if (card && !writes(card)) return {};
  if (!state.sample) return state.beam ? { beam: state.beam } : {};
  const { temperature, top_k, top_p, seed } = state.sample;
  return { sample: { temperature, seed, ...(top_k ? { top_k } : {}), ...(top_p < 1 ? { top_p } : {}) } };
}

/** Whether its answers are written token by token. */
function writes({ task }: ModelCard): boolean {
  return ["transduce", "generate", "caption"].includes(task);
}

function wishFor(table: Table, place: number, name: string, state: State): void {
  const slots = slotsOf(table, place);
  const asked = wish(table, name, state);
  if (!asked) return clearSlots(slots);
  const key = keyOf(table, asked);
  const again = table.store.redraw;
  ask(slots.original, key, slots.original.key === "" ? 0 : TYPING, async (signal) => readRecord(await look(asked, signal)), again);
  const ready = slots.original.answered === key ? slots.original.answer : null;
  if (!ready) return;
  derive(table, slots.derived, slots.original, asked, state.view !== "attention" || ready.source.tokens.length <= SHORT);
  if (!changesAnything(state.whatIf)) return [slots.edited, slots.changed, slots.changedDerived].forEach((one) => empty(one as Slot<unknown>));
  const changed = changedWish(table, place, asked, state, ready);
  if (!changed) return;
  ask(slots.changed, keyOf(table, changed), 0, async (signal) => readRecord(await look(changed, signal)), again);
  derive(table, slots.changedDerived, slots.changed, changed, state.view !== "attention");
}

/** A picture is many letters: that it was the third to be chosen stands for it; of the lesson, its model has but one. */
function keyOf(table: Table, asked: LookWish): string {
  const chosen = table.picture && asked.picture === table.picture.data ? table.picture.number : 0;
  return JSON.stringify({ ...asked, picture: asked.picture === undefined ? null : chosen });
}

/** The views that cost more, put into the record they belong to when they come. */
function derive(table: Table, place: Slot<null>, of: Slot<Record>, asked: LookWish, wanted: boolean): void {
  const key = keyOf(table, asked);
  if (!wanted || of.answered !== key || of.answer?.derived || of.answer?.target.tokens.length === 0) return;
  const question = async (signal: AbortSignal): Promise<null> => {
    const record = readRecord(await look({ ...asked, derive: true }, signal));
    if (of.answered === key && of.answer) of.answer = { ...of.answer, derived: record.derived };
    return null;
  };
  ask(place, key, table.store.state().view === "attention" ? REST : 0, question, table.store.redraw);
}

/** All that is changed, in one wish; null = something has to be answered before it can be said in this model's tokens. */
function changedWish(table: Table, place: number, asked: LookWish, state: State, own: Record): LookWish | null {
  const { whatIf } = state;
  const first = table.slots[0]?.original.answer;
  const plain = editedWish(asked, whatIf, own.source.text);
  const basis = basisOf(table, slotsOf(table, place), plain, asked, whatIf, own);
  const card = table.cards.find(({ name }) => name === asked.model);
  const forcing = whatIf.begin && whatIf.begin.panel < state.models.length ? whatIf.begin : null;
  const begin = beginningIn(place, forcing, table.slots[forcing?.panel ?? 0]?.changed.answer ?? null, !card || writes(card));
  if (!first || !basis || begin === null) return null;
  return { ...plain, change: { erase: erasedIn(basis, first, whatIf), off: offIn(own, place, whatIf), begin } };
}

/** The run whose source tokens what is erased is numbered by: a text with words replaced has other tokens. */
function basisOf(table: Table, slots: Slots, plain: LookWish, asked: LookWish, whatIf: WhatIf, own: Record): Record | null {
  if (plain === asked || !whatIf.erase.length) {
    empty(slots.edited);
    return own;
  }
  ask(slots.edited, keyOf(table, plain), 0, async (signal) => readRecord(await look(plain, signal)), table.store.redraw);
  return slots.edited.answered === keyOf(table, plain) ? slots.edited.answer : null;
}

/** The run of a model that is on show: the changed one where there is one and it is asked for. */
function onShow(slots: Slots | undefined, state: State): Record | null {
  const changed = changesAnything(state.whatIf) && state.show === "changed" ? slots?.changed.answer : null;
  return changed ?? slots?.original.answer ?? null;
}

function panelsOf(table: Table, state: State): Panel[] {
  const from = onShow(table.slots[state.selected?.panel ?? 0], state);
  return state.models.flatMap((_, number): Panel[] => {
    const slots = table.slots[number];
    const original = slots?.original.answer;
    const record = onShow(slots, state);
    if (!slots || !original || !record) return [];
    const changed = changesAnything(state.whatIf) ? slots.changed.answer : null;
    return [{ number, state, record, original, changed, basis: slots.edited.answer ?? original, live: true, selected: translated(state.selected, from ?? record, record, number) }];
  });
}

function drawPanels(root: HTMLElement, table: Table, panels: readonly Panel[], state: State): void {
  root.dataset["count"] = String(state.models.length);
  while (root.children.length > state.models.length) root.lastElementChild!.remove();
  while (root.children.length < state.models.length) root.append(make("section", { class: "place" }));
  state.models.forEach((name, number) => {
    const place = root.children[number] as HTMLElement;
    const slots = table.slots[number];
    const problem = part(place, "p", "problem", { role: "alert" });
    const said = slots?.original.error || slots?.edited.error || slots?.changed.error || slots?.derived.error || "";
    if (problem.textContent !== said) problem.textContent = said;
    problem.hidden = !said;
    const panel = panels.find((one) => one.number === number);
    const nothing = part(place, "p", "nothing hint");
    nothing.hidden = panel !== undefined || said !== "";
    if (!nothing.hidden) nothing.textContent = slots?.original.key ? "" : emptiness(table.cards.find((card) => card.name === name), state);
    const sheet = part(place, "section", "sheet");
    dress(sheet, { "aria-label": `answer of ${name}` });
    sheet.hidden = !panel;
    if (panel) drawSheet(sheet, panel, table.store.act);
  });
}

/** What is said before anything was asked. */
function emptiness(card: ModelCard | undefined, state: State): string {
  const columns = state.text.trim() ? missing(card, state) : [];
  if (columns.length) return `Write something into ${columns.join(" and ")}, too.`;
  if (card?.reads === "picture") return "The caption appears here, and where each word looked.";
  return card?.task === "embed" ? "Type what is to be looked for." : "The answer appears here as you type, and what each word looked at.";
}

function drawHits(table: Table, root: HTMLElement, model: string, state: State): void {
  const texts = state.lines.split("\n").map((line) => line.trim()).filter(Boolean).slice(0, 1000);
  if (!texts.length || !state.text.trim()) empty(table.hits);
  else ask(table.hits, JSON.stringify([model, state.text, texts]), TYPING, async (signal) => (await search(state.text, texts, model, signal)).hits, table.store.redraw);
  drawSearch(root, state, table.hits.answer, table.hits.error, table.store.act);
}

/** The lesson is asked for when it is opened; not every server has one. */
function openLesson(table: Table, root: HTMLElement, state: State): void {
  ask(table.lesson, "lesson", 0, () => askLesson(), table.store.redraw);
  const problem = part(root, "p", "problem", { role: "alert" });
  problem.textContent = table.lesson.error;
  problem.hidden = !table.lesson.error;
  const named = table.lesson.answer?.pages.some(({ name }) => name === state.page) ?? true;
  drawNotice(part(root, "p", "notice unsaved", { role: "status" }), [...table.complaints, ...(named || !state.page ? [] : [`There is no page ${quoted(state.page.slice(0, 60))} in the lesson; this is the first.`])]);
  if (table.lesson.answer) learn(table, root, table.lesson.answer, state);
}

/** The lesson's own models answer under their own names. */
function learn(table: Table, root: HTMLElement, lesson: Lesson, state: State): void {
  const page = lesson.pages.find(({ name }) => name === state.page) ?? lesson.pages[0];
  if (!page) return;
  const text = asksAbout(lesson, page, state);
  const slots = slotsOf(table, 0);
  const picture = page.record?.picture?.data;
  const asked: LookWish = { text, model: `lesson/${page.name}`, packed: true, ...(picture ? { picture } : {}) };
  if (text.trim()) {
    ask(slots.original, keyOf(table, asked), slots.original.key === "" ? 0 : TYPING, async (signal) => readRecord(await look(asked, signal)), table.store.redraw);
    if (slots.original.answered === keyOf(table, asked)) derive(table, slots.derived, slots.original, asked, true);
  }
  const mine = slots.original.answered.includes(JSON.stringify(asked.model)) ? slots.original.answer : null;
  drawLesson(root, lesson, page, state, { act: table.store.act, live: true, record: mine, error: slots.original.error, busy: slots.original.busy });
}
