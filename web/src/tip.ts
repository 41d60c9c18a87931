// A number beside what the pointer or the focus is on: whatever has `data-tip` says it here. A finger asks for none.
import { make } from "./dom";

export function tips(page: HTMLElement): void {
  const tip = make("div", { id: "tip", role: "tooltip", hidden: true });
  page.append(tip);
  const show = (event: Event): void => {
    const owner = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    tip.hidden = !owner || owner.closest("details[open]") !== null;
    if (!owner || tip.hidden) return;
    tip.textContent = owner.getAttribute("data-tip");
    const place = owner.getBoundingClientRect();
    tip.style.left = "0"; // where there is room for all of it
    const own = tip.getBoundingClientRect();
    const left = Math.max(6, Math.min(document.documentElement.clientWidth - own.width - 6, place.left + place.width / 2 - own.width / 2));
    const above = place.top - own.height - 6;
    const below = owner.closest("header.bar") !== null || above <= 4; // above the line at the top stands another of its rows
    tip.style.left = `${left}px`;
    tip.style.top = `${below ? place.bottom + 6 : above}px`;
  };
  page.addEventListener("pointerover", (event) => event.pointerType === "mouse" && show(event));
  page.addEventListener("focusin", (event) => (event.target as Element).matches(":focus-visible") && show(event));
  page.addEventListener("toggle", () => (tip.hidden = true), { capture: true }); // a menu has opened where it stood
  page.addEventListener("pointerleave", () => (tip.hidden = true));
  page.addEventListener("pointerdown", () => (tip.hidden = true));
  page.addEventListener("focusout", () => (tip.hidden = true));
  window.addEventListener("scroll", () => (tip.hidden = true), { passive: true, capture: true });
}
