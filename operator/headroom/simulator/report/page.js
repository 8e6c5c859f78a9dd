"use strict";
// Optional: selects the timelines shown, sorts tables, and shows values under the pointer.
for (const section of document.querySelectorAll("section.service")) {
  const timelines = [...section.querySelectorAll(".timeline")];
  const box = section.querySelector(".choice");
  const shown = Number(box?.dataset.shown ?? 2);
  timelines.forEach((timeline, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = timeline.dataset.name;
    const show = (on) => { timeline.hidden = !on; button.setAttribute("aria-pressed", String(on)); };
    button.addEventListener("click", () => show(timeline.hidden));
    show(index < shown);
    box.append(button);
  });

  const plots = timelines.map((timeline) => {
    const svg = timeline.querySelector("svg");
    return {
      svg, cursor: svg.querySelector(".cursor"), reading: timeline.querySelector(".reading"),
      quiet: timeline.querySelector(".reading").innerHTML,
      data: JSON.parse(timeline.querySelector("script").textContent),
      moves: [...timeline.querySelectorAll("tr[data-t]")],
      from: Number(timeline.dataset.from), till: Number(timeline.dataset.till),
    };
  });
  const LEFT = 44, RIGHT = 712, WIDTH = 720;
  let at = null;
  const number = (value, unit = "") => value == null ? "unknown" : `<b>${value}</b>${unit}`;
  const clock = (t) => {
    const s = Math.round(t), two = (n) => String(n).padStart(2, "0");
    return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  };
  const read = (plot, t) => {
    const d = plot.data;
    let i = d.t.findIndex((each) => each >= t);
    if (i < 0) i = d.t.length - 1;
    if (i < 0) return;
    const x = LEFT + (t - plot.from) / (plot.till - plot.from) * (RIGHT - LEFT);
    plot.cursor.setAttribute("x1", x); plot.cursor.setAttribute("x2", x);
    plot.cursor.style.visibility = "visible";
    const states = ["ready", "warming", "unschedulable", "draining"]
      .filter((name) => name === "ready" || d[name][i]).map((name) => `${number(d[name][i])} ${name}`);
    const tail = d.p95_ms[i] === -1 ? "<b>no answer</b>" : number(d.p95_ms[i], " ms");
    const parts = [`<b>${clock(t)}</b>`, `${number(d.load[i])}/s`, `${number(d.desired[i])} desired`,
      states.join(", "), `${number(d.waiting[i])} waiting`, `latency ${tail}`];
    plot.reading.innerHTML = parts.join(" · ");
    const reach = (plot.till - plot.from) / 120;
    const near = plot.moves.map((row) => [Math.abs(row.dataset.t - t), row])
      .filter(([gap]) => gap <= reach).sort((a, b) => a[0] - b[0])[0];
    if (near) {
      const said = document.createElement("div");
      said.textContent = [...near[1].cells].map((cell) => cell.textContent).join("  ");
      plot.reading.append(said);
    }
  };
  const readAll = (t) => { at = t; plots.forEach((plot) => { if (plot.data.t.length) read(plot, t); }); };
  const quiet = () => plots.forEach((plot) => {
    plot.cursor.style.visibility = "hidden"; plot.reading.innerHTML = plot.quiet;
  });
  for (const plot of plots) {
    const span = plot.till - plot.from;
    plot.svg.tabIndex = 0;
    plot.svg.addEventListener("pointermove", (event) => {
      const box = plot.svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * WIDTH;
      readAll(plot.from + Math.min(1, Math.max(0, (x - LEFT) / (RIGHT - LEFT))) * span);
    });
    plot.svg.addEventListener("pointerleave", quiet);
    plot.svg.addEventListener("blur", quiet);
    plot.svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = (at ?? plot.from) + step * span / (event.shiftKey ? 20 : 160);
      readAll(Math.min(plot.till, Math.max(plot.from, next)));
    });
  }

  const table = section.querySelector("table.scores");
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const less = (a, b) => isNaN(key(a)) || isNaN(key(b)) ? key(a).localeCompare(key(b)) : key(a) - key(b);
      const rows = [...table.tBodies[0].rows].sort((a, b) => (up ? 1 : -1) * less(a, b));
      table.tBodies[0].append(...rows);
    });
  });
}
