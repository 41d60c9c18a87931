// One record of a file in, its page out: the same views, with nobody to ask.
import { barOf, drawBar, drawTheme } from "./bar";
import { part } from "./dom";
import { readRecord } from "./record";
import { drawSheet } from "./sheet";
import type { State } from "./state";
import { openStore, type Store } from "./store";
import { tips } from "./tip";
import type { WireRecord } from "./wire";

export function startRecord(page: HTMLElement, wire: WireRecord): void {
  const record = readRecord(wire);
  const store: Store = openStore((state) => draw(state), (state) => ({ ...state, tab: "look" }));
  const draw = (state: State): void => {
    drawTheme(state);
    drawBar(barOf(page), state, { models: [], lesson: false, title: record.source.text.replace(/\t/g, " ⇥ ").slice(0, 80) }, store.act);
    const main = part(page, "main", "main");
    const sheet = part(main, "section", "sheet", { "aria-label": "record" });
    drawSheet(sheet, { number: 0, state, record, original: record, changed: null, basis: record, selected: state.selected, live: false }, store.act);
  };
  document.title = `${record.model.name}: ${record.source.text.slice(0, 60)}`;
  tips(page);
  page.addEventListener("keydown", (event) => event.key === "Escape" && store.act.clear());
  store.redraw();
}
