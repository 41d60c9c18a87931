// What if, and what the models answered so far, in; what one of them is asked to change out, in its own tokens.
import type { LookWish } from "./client";
import { edited, forward } from "./edits";
import { tokensIn } from "./panel";
import { switchable, writable, type Record } from "./record";
import type { Beginning, WhatIf } from "./state";
import type { Change } from "./wire";

/** The wish with the words of its text replaced. */
export function editedWish(asked: LookWish, { replace }: WhatIf, text: string): LookWish {
  if (!replace.length || asked.picture !== undefined) return asked;
  const made = edited(text, replace);
  return { ...asked, text: Array.isArray(asked.text) ? made.split("\t") : made };
}

/** Words are numbered by the first model: for the others, and in a text with words replaced, the same places are meant. */
export function erasedIn(basis: Record, first: Record, { erase, replace }: WhatIf): number[] {
  if (basis === first || basis.picture) return erase.filter((index) => index < basis.source.tokens.length);
  const stretches = erase.flatMap((index) => {
    const token = first.source.tokens[index];
    const there = token && !token.sign ? forward(replace, [token.start, token.end]) : null;
    return there ? [there] : [];
  });
  return tokensIn(basis.source, stretches).filter((index) => basis.source.tokens[index]!.text !== "<mask>");
}

/** The heads of this model that are to be off and are there. */
export function offIn(own: Record, place: number, { off }: WhatIf): Change["off"] {
  const there = off.filter(({ panel, map, head }) => panel === place && switchable(map) && own.maps.some((one) => one.name === map && head < one.heads.length));
  return there.map(({ map, head }) => [map, head]);
}

/** What a model is made to begin with: its own tokens, or what those of another spelled; null = that is not known yet. */
export function beginningIn(place: number, begin: Beginning | null, forced: Record | null, writes: boolean): Change["begin"] | null {
  if (!begin || !writes || !begin.tokens.every(writable)) return [];
  if (begin.panel === place) return [...begin.tokens];
  if (String(forced?.change?.begin) !== String(begin.tokens)) return null;
  return forced!.target.text.slice(0, forced!.target.tokens[begin.tokens.length - 1]?.end ?? 0);
}
