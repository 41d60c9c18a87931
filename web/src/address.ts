// An address and what is there in, sentences out about what it names that is not there.
import { quoted, type Record } from "./record";
import { fromHash, toHash, type State } from "./state";

const KNOWN = new Set(["tab", "page", "model", "text", "picture", "lines", "say", "beam", "sample", "view", "map", "at", "step", "erase", "begin", "off", "replace", "show", "theme", "example"]);
const FREE = new Set(["model", "text", "picture", "lines", "say", "page"]); // anything may stand there
const LESSON = new Set(["erase", "begin", "off", "replace", "show"]); // what the lesson has nothing of

/** What an address says and nobody understands: it is left out when the address is written anew. */
export function notUnderstood(hash: string): string[] {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const state = fromHash(hash);
  const kept = new URLSearchParams(toHash(state));
  const odd = [...said].filter(([name, value]) => {
    if (!KNOWN.has(name)) return true;
    if (FREE.has(name) || value === "" || (state.tab === "lesson" && LESSON.has(name))) return false;
    return !kept.has(name) && !usual(name, value);
  });
  return odd.map(([name, value]) => `The address says ${quoted(`${name}=${value}`.slice(0, 60))}, which means nothing here.`);
}

/** Whether a value is left out of addresses because it is the one at the start. */
function usual(name: string, value: string): boolean {
  return ["tab=look", "view=attention", "show=changed", "beam=0", "example=0"].includes(`${name}=${value}`);
}

export function noSuchModels(names: readonly string[], instead: string): string[] {
  return names.map((name) => `There is no model ${quoted(name.slice(0, 60))} here${instead ? `; ${quoted(instead)} answers` : ""}.`);
}

/** An address names a picture and does not hold it. */
export function noSuchPicture(name: string): string {
  return `The address speaks of the picture ${quoted(name.slice(0, 60))}, and a picture is too large for an address: choose it again, and all else is as it was.`;
}

/** What the state asks of records that they do not have: of the first what is of the text, of each its heads. */
export function notThere({ whatIf, map, selected, view }: State, records: readonly (Record | undefined)[]): string[] {
  const record = records[0];
  if (!record) return [];
  const tokens = record.source.tokens.length;
  const has = (name: string, head: number): boolean => record.maps.some((one) => one.name === name && head < one.heads.length);
  const gone = whatIf.erase.filter((index) => index >= tokens);
  const off = whatIf.off.filter(({ panel, map, head }) => !records[panel]?.maps.some((one) => one.name === map && head < one.heads.length));
  const beyondText = whatIf.replace.filter(({ end }) => end > record.source.text.length);
  const lost = map && view === "attention" && !has(map.name, map.head ?? 0) ? `${map.name}/${map.head ?? "mean"}` : "";
  const beyond = selected?.side === "source" && selected.panel === 0 && selected.index >= tokens;
  return [
    gone.length ? `There is no source token ${gone.join(", ")} to erase: they are numbered from 0 to ${tokens - 1}.` : "",
    ...off.map(({ map, head }) => `There is no head ${quoted(`${map}/${head}`.slice(0, 60))} to switch off.`),
    ...beyondText.map(({ start, end }) => `There is nothing from letter ${start} to ${end} to replace: the text has ${record.source.text.length}.`),
    lost ? `There is no head ${quoted(lost.slice(0, 60))} to look through; the mean of all is shown.` : "",
    beyond ? `There is no source token ${selected.index} to look at: they are numbered from 0 to ${tokens - 1}.` : "",
  ].filter(Boolean);
}
