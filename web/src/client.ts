// A wish in, an answer of the server out, or an error that says what was wrong.
import type { Change, Hit, Lesson, ModelCard, WireRecord } from "./wire";
import { counted } from "./dom";
import type { Sampling } from "./state";

export interface LookWish {
  text: string | string[];
  picture?: string;
  model: string;
  beam?: number;
  sample?: Partial<Sampling>;
  change?: Change;
  derive?: boolean;
  packed?: boolean;
}

async function answered<T>(response: Response): Promise<T> {
  const said: unknown = await response.json().catch(() => null);
  if (response.ok && said !== null) return said as T;
  const error = (said as { error?: { message?: string; field?: string | null } } | null)?.error;
  throw new Error(error?.message ? plainly(error.message, error.field ?? "") : `the server answered ${response.status}`);
}

/** What is refused most often, in the words of who typed it; anything else as the server says it. */
function plainly(message: string, field: string): string {
  const most = /at most (\d+) characters/.exec(message)?.[1];
  if (most && /^text/.test(field)) return `The text is too long: the server reads ${counted(Number(most))} characters at most.`;
  return field ? `${field}: ${message}` : message;
}

async function post<T>(path: string, body: unknown, signal: AbortSignal): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return answered<T>(await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal }));
}

export function look(wish: LookWish, signal: AbortSignal): Promise<WireRecord> {
  return post("v1/look", wish, signal);
}

export function search(query: string, texts: string[], model: string, signal: AbortSignal): Promise<{ hits: Hit[] }> {
  return post("v1/search", { query, texts, model, count: Math.min(10, texts.length) }, signal);
}

export async function models(): Promise<{ models: ModelCard[]; lesson: boolean }> {
  return answered(await fetch("v1/models"));
}

export async function lesson(): Promise<Lesson> {
  return answered<Lesson>(await fetch("v1/lesson"));
}
