"use strict";
// The pages work without this script: it refreshes them, handles keys, and shows values of the plot.
const EVERY_MS = 5000;
const pulse = document.getElementById("pulse");
const keys = document.getElementById("keys");
let going = true;
let shown = Date.now();

function tell(words, stale) {
  pulse.textContent = words;
  pulse.classList.toggle("stale", stale);
}

// Replace the live parts with the server's current ones, and keep the focus.
async function refresh() {
  if (!going || document.hidden || keys.open) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const old of document.querySelectorAll("[data-live]")) {
      const now = fresh.getElementById(old.id);
      if (!now || now.innerHTML === old.innerHTML) continue;
      const focus = old.contains(document.activeElement) ? document.activeElement : null;
      const scrolled = [...old.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
      old.replaceChildren(...now.childNodes);
      old.querySelectorAll(".scroll").forEach((box, index) => {
        if (scrolled[index]) [box.scrollLeft, box.scrollTop] = scrolled[index];
      });
      if (focus) again(old, focus)?.focus({ preventScroll: true });
    }
    shown = Date.now();
    tell("live", false);
    readAgain();
  } catch (error) {
    tell(`not refreshed for ${Math.round((Date.now() - shown) / 1000)} s (${error.message})`, true);
  }
}

function again(within, focus) {
  const href = focus.getAttribute("href");
  if (href) return within.querySelector(`a[href="${CSS.escape(href)}"]`);
  return within.querySelector(focus.tagName);
}

// j and k walk through the services.
function walk(step) {
  const links = [...document.querySelectorAll("a.open")];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step));
  links[next].focus();
  links[next].scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
  const typing = event.target.closest("input, select, textarea");
  if (typing) {
    if (event.key === "Escape") typing.blur();
    return;
  }
  const search = document.getElementById("search");
  const go = (selector) => document.querySelector(selector)?.click();
  const actions = {
    "/": () => search?.focus(),
    j: () => walk(1),
    k: () => walk(-1),
    n: () => go('a[rel="next"][href]'),
    p: () => go('a[rel="prev"][href]'),
    u: () => go("a.brand"),
    r: () => { going = !going; tell(going ? "live" : "paused", !going); if (going) refresh(); },
    "?": () => keys.showModal(),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
});

// The plot: a cursor under the pointer or the arrow keys, and its values as text.
const LEFT = 46, RIGHT = 710, WIDTH = 720;
let at = null;

function readAt(time) {
  const box = document.getElementById("history"), reading = document.querySelector(".reading");
  const svg = box?.querySelector("svg"), cursor = svg?.querySelector(".cursor");
  if (!svg || !reading) return;
  const data = JSON.parse(box.querySelector("script").textContent);
  const from = Number(svg.dataset.from), till = Number(svg.dataset.till);
  if (!data.t.length) return;
  at = Math.min(till, Math.max(from, time));
  let i = data.t.findIndex((each) => each >= at);
  if (i < 0) i = data.t.length - 1;
  const x = LEFT + (at - from) / (till - from) * (RIGHT - LEFT);
  cursor.setAttribute("x1", x); cursor.setAttribute("x2", x);
  cursor.style.visibility = "visible";
  const number = (name, unit) => {
    const value = data[name][i];
    return [value === null ? "unknown" : value === -1 ? "unbounded" : String(value), unit];
  };
  const seconds = data.latency_s[i];
  const tail = seconds === null || seconds === -1 ? number("latency_s", " latency")
    : [seconds < 2 ? `${Math.round(seconds * 1000)}` : String(seconds), seconds < 2 ? " ms" : " s"];
  const states = ["warming", "late", "unschedulable", "broken"].filter((name) => data[name][i])
    .map((name) => number(name, ` ${name}`));
  const [arrivals, perSecond] = number("arrivals_rps", "/s");
  const sign = { 1: "\u2265\u202f", [-1]: "\u2264\u202f" }[data.bound?.[i]] ?? "";
  const parts = [
    [new Date(data.t[i] * 1000).toISOString().slice(11, 19), ""],
    [sign + arrivals, perSecond], number("desired", " desired"), number("ready", " ready"), ...states,
    number("waiting", " waiting"), tail,
  ];
  reading.replaceChildren(...parts.flatMap(([value, unit], index) => {
    const bold = document.createElement("b");
    bold.textContent = value;
    return [index ? " · " : "", bold, unit];
  }));
}

function readAgain() {
  if (at !== null) readAt(at);
}

document.addEventListener("pointermove", (event) => {
  const svg = event.target.closest?.("#history svg");
  if (!svg) return;
  const box = svg.getBoundingClientRect();
  const x = (event.clientX - box.left) / box.width * WIDTH;
  const from = Number(svg.dataset.from), till = Number(svg.dataset.till);
  readAt(from + Math.min(1, Math.max(0, (x - LEFT) / (RIGHT - LEFT))) * (till - from));
});
document.addEventListener("keydown", (event) => {
  const svg = event.target.closest?.("#history svg");
  const step = { ArrowLeft: -10, ArrowRight: 10 }[event.key];
  if (!svg || !step) return;
  event.preventDefault();
  readAt((at ?? Number(svg.dataset.till)) + step * (event.shiftKey ? 12 : 1));
});

setInterval(refresh, EVERY_MS);
document.addEventListener("visibilitychange", refresh);
