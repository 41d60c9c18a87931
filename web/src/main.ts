// The page begins: what lies in the file is drawn; where nothing does, a server is asked.
import "./page.css";
import { make } from "./dom";
import { startLesson } from "./lesson";
import { startLive } from "./live";
import { startRecord } from "./paper";
import { startReport } from "./report";
import type { Lesson, Report, WireRecord } from "./wire";

type Kept = WireRecord | Report | Lesson;

function start(): void {
  const page = document.getElementById("page") ?? document.body.appendChild(make("div", { id: "page" }));
  const failed = (error: unknown): void => {
    page.append(make("p", { class: "problem", role: "alert" }, `the page could not be drawn: ${error instanceof Error ? error.message : String(error)}`));
  };
  try {
    const kept = document.getElementById("regard")?.textContent;
    if (kept == null) startLive(page).catch(failed);
    else startKept(page, JSON.parse(kept) as Kept);
  } catch (error) {
    failed(error);
  }
}

function startKept(page: HTMLElement, kept: Kept): void {
  switch (kept.kind) {
    case "record":
      return startRecord(page, kept);
    case "report":
      return startReport(page, kept);
    case "lesson":
      return startLesson(page, kept);
    default:
      throw new Error(`“kind” is “${(kept as { kind?: string }).kind}”, expected record, report or lesson`);
  }
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
