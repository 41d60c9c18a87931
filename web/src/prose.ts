// The Markdown of a model card in, elements out: headings, lists, tables, code and paragraphs; all of it as text.
import { make } from "./dom";

export function prose(text: string): HTMLElement[] {
  const lines = text.replace(/\r/g, "").split("\n");
  const made: HTMLElement[] = [];
  for (let i = 0; i < lines.length; ) {
    const [element, next] = block(lines, i);
    if (element) made.push(element);
    i = next;
  }
  return made;
}

const INDENTED = /^ {4}\S/;
const LIST = /^\s*(?:[-*+]|\d+\.)\s+/;

function block(lines: readonly string[], at: number): [HTMLElement | null, number] {
  const line = lines[at]!;
  const heading = /^(#{1,4})\s+(.*)$/.exec(line);
  if (heading) return [make(heading[1]!.length === 1 ? "h3" : "h4", {}, ...inline(heading[2]!)), at + 1];
  if (at === 0 && line === "---") return front(lines);
  if (line.startsWith("```")) return code(lines, at);
  if (INDENTED.test(line)) return indented(lines, at);
  if (line.startsWith("|")) return table(lines, at);
  if (LIST.test(line)) return list(lines, at);
  if (!line.trim()) return [null, at + 1];
  const end = upTo(lines, at, (one) => !one.trim() || /^(#|```|\|)/.test(one) || LIST.test(one));
  return [make("p", {}, ...inline(lines.slice(at, end).join(" "))), end];
}

function upTo(lines: readonly string[], at: number, stops: (line: string) => boolean): number {
  let end = at + 1;
  while (end < lines.length && !stops(lines[end]!)) end++;
  return end;
}

/** The lines between two rules at the head of a card. */
function front(lines: readonly string[]): [HTMLElement | null, number] {
  const end = upTo(lines, 0, (line) => line === "---");
  return end < lines.length ? [make("pre", {}, lines.slice(1, end).join("\n")), end + 1] : [null, 1];
}

function code(lines: readonly string[], at: number): [HTMLElement, number] {
  const end = upTo(lines, at, (line) => line.startsWith("```"));
  return [make("pre", {}, lines.slice(at + 1, end).join("\n")), end + 1];
}

/** What is set in by four spaces is code too: it keeps its lines and its columns. */
function indented(lines: readonly string[], at: number): [HTMLElement, number] {
  const end = upTo(lines, at, (line) => !line.startsWith("    "));
  return [make("pre", {}, lines.slice(at, end).map((line) => line.slice(4)).join("\n")), end];
}

function list(lines: readonly string[], at: number): [HTMLElement, number] {
  const end = upTo(lines, at, (line) => !LIST.test(line));
  return [make("ul", {}, ...lines.slice(at, end).map((line) => make("li", {}, ...inline(line.replace(LIST, ""))))), end];
}

function table(lines: readonly string[], at: number): [HTMLElement, number] {
  const end = upTo(lines, at, (line) => !line.startsWith("|"));
  const rows = lines.slice(at, end).filter((line) => !/^\|[\s:|-]+\|?$/.test(line));
  const cells = (line: string): string[] => line.replace(/^\||\|\s*$/g, "").split(/(?<!\\)\|/).map((cell) => cell.replace(/\\\|/g, "|").trim());
  const made = rows.map((line, i) => make("tr", {}, ...cells(line).map((cell) => make(i ? "td" : "th", {}, ...inline(cell)))));
  return [make("div", { class: "scroll" }, make("table", {}, ...made)), end];
}

/** `code` and **strong**; whatever else is written stays as it is written. */
function inline(text: string): (Node | string)[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).filter(Boolean).map((piece) => {
    if (piece.startsWith("`") && piece.length > 2) return make("code", {}, piece.slice(1, -1));
    if (piece.startsWith("**") && piece.length > 4) return make("strong", {}, piece.slice(2, -2));
    return piece;
  });
}
