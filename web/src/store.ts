// The one state, the ways to change it, and the address that follows it.
import type { Act } from "./panel";
import { doingsOf, fromHash, START, toHash, type Doings, type State } from "./state";

export interface Store {
  state(): State;
  readonly act: Act;
  /** Draws at the next frame, however often it is asked for. */
  redraw(): void;
}

const PAUSE = 250; // milliseconds between two writings of the address

export function openStore(draw: (state: State) => void, begin: (state: State) => State = (state) => state): Store {
  let state = begin(fromHash(location.hash));
  let frame = 0;
  let address = 0;
  const left: { [tab in State["tab"]]?: Doings } = {}; // what was done to a tab waits there
  const redraw = (): void => {
    if (frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      draw(state);
    });
  };
  const set = (change: Partial<State>): void => {
    const turned = (change.tab !== undefined && change.tab !== state.tab) || (change.page !== undefined && change.page !== state.page);
    if (change.tab !== undefined && change.tab !== state.tab) {
      left[state.tab] = doingsOf(state);
      change = { ...(left[change.tab] ?? doingsOf(START)), ...change };
    }
    state = { ...state, ...change };
    if (turned) history.pushState(null, "", `#${toHash(state)}`);
    else if (!address) address = window.setTimeout(() => { address = 0; write(state); }, PAUSE);
    redraw();
  };
  window.addEventListener("popstate", () => {
    state = begin(fromHash(location.hash));
    redraw();
  });
  follow(redraw);
  return { state: () => state, act: acting(() => state, set), redraw };
}

function write(state: State): void {
  const hash = toHash(state);
  if (location.hash.replace(/^#/, "") !== hash) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

/** What is drawn depends on the window and on light and dark, too. */
function follow(redraw: () => void): void {
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  document.fonts?.ready.then(redraw, () => undefined);
}

function acting(state: () => State, set: (change: Partial<State>) => void): Act {
  return {
    set,
    select(selection, how = "over") {
      const now = state().selected;
      if (how === "over" && now?.pinned) return;
      const same = now?.side === selection.side && now.index === selection.index && now.role === selection.role && now.across === selection.across && now.panel === selection.panel;
      if (how === "pin" && same && now.pinned) return set({ selected: null });
      if (same && how !== "pin") return;
      set({ selected: { ...selection, pinned: how === "pin" || (how === "focus" && (now?.pinned ?? false)) } });
    },
    leave() {
      if (state().selected && !state().selected!.pinned) set({ selected: null });
    },
    clear: () => set({ selected: null, step: null }),
  };
}
