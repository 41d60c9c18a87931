// What every view of one model's answer is drawn from.
import type { Record } from "./record";
import type { Selection, State } from "./state";

export interface Panel {
  readonly number: number;
  readonly state: State;
  /** What is shown: the changed run where there is one and it is asked for. */
  readonly record: Record;
  readonly original: Record;
  readonly changed: Record | null;
  readonly selected: Selection | null;
  /** Whether a server answers, so that something can be changed. */
  readonly live: boolean;
}

/** The ways in which a view can answer to a hand. */
export interface Act {
  set(change: Partial<State>): void;
  /** A pointer over something, a focus that moves on, or a click that holds it. */
  select(selection: Omit<Selection, "pinned">, how?: "over" | "focus" | "pin"): void;
  leave(): void;
  clear(): void;
}

/** The same place in another model's answer: the source by where it stands in the text, the rest by its number. */
export function translated(selection: Selection | null, from: Record, to: Record, panel: number): Selection | null {
  if (!selection || selection.panel === panel) return selection;
  if (selection.side === "source") {
    const start = from.source.tokens[selection.index]?.start ?? -1;
    const index = to.source.tokens.findIndex((token) => token.start <= start && start < Math.max(token.end, token.start + 1));
    return index < 0 ? null : { ...selection, panel, index, across: null };
  }
  const count = to.target.tokens.length + (selection.side === "row" ? to.source.tokens.length : 0);
  return selection.index < count ? { ...selection, panel, across: null } : null;
}
