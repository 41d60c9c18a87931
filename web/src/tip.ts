// A number beside what the pointer or the focus is on: whatever has `data-tip` says it here.
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
    const own = tip.getBoundingClientRect();
    const left = Math.max(6, Math.min(innerWidth - own.width - 6, place.left + place.width / 2 - own.width / 2));
    const above = place.top - own.height - 6;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 4 ? above : place.bottom + 6}px`;
  };
  page.addEventListener("pointerover", show);
  page.addEventListener("focusin", show);
  page.addEventListener("pointerleave", () => (tip.hidden = true));
  page.addEventListener("pointerdown", () => (tip.hidden = true));
  page.addEventListener("focusout", () => (tip.hidden = true));
  window.addEventListener("scroll", () => (tip.hidden = true), { passive: true, capture: true });
}
