// Adds to a report that can be read without it: moments of the run, whole texts, search, keys, light and dark.
// Whatever a model or a tool wrote is put into the page as text alone; the page's policy forbids anything else.
"use strict";

const $ = (id) => document.getElementById(id);
const main = $("main");

/** Return an element with properties, and children that are elements or texts. */
function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** Return the compressed part of the page: the states of the run, and its long texts. */
async function unpack() {
  const bytes = Uint8Array.from(atob($("archive").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** Long texts: the page shows their beginnings until somebody asks for the rest. */
class Texts {
  constructor(texts) {
    this.texts = texts;
    for (const holder of main.querySelectorAll("[data-text]")) {
      const more = holder.querySelector(".more");
      const button = make("button", { type: "button", textContent: `Show all ${this.of(holder).length.toLocaleString("en")} characters` });
      button.addEventListener("click", () => this.show(holder));
      more.replaceChildren(button);
    }
  }

  of(holder) {
    return this.texts[holder.dataset.text];
  }

  show(holder) {
    const more = holder.querySelector(".more");
    if (!more) return;
    const whole = this.of(holder), old = holder.firstElementChild;
    const block = make("pre", { className: old.className });
    if (old.classList.contains("diff")) {
      const kinds = { "+": "ins", "-": "del" };
      for (const line of whole.split("\n")) block.append(make(kinds[line[0]] || "span", {}, `${line}\n`));
    } else {
      block.textContent = whole;
    }
    old.replaceWith(block);
    more.remove();
  }
}

/** The moment that the page shows: plan, statuses, cycles and cost as they were after one record. */
class Moment {
  constructor(run, bar) {
    this.run = run;
    this.seq = run.last;
    this.timed = [...main.querySelectorAll("[data-seq]")].map((element) => [Number(element.dataset.seq), element]);
    this.lines = [...main.querySelectorAll(".records li[id]")];
    this.tree = $("tree");
    this.whole = this.tree ? [...this.tree.children] : [];
    this.icons = [...main.querySelectorAll("[data-icon]")].map((icon) => [icon, icon.textContent, icon.className]);
    const range = { type: "range", min: run.first, max: run.last, value: run.last };
    this.slider = make("input", { ...range, ariaLabel: "Moment of the run, by record" });
    this.slider.addEventListener("input", () => this.set(Number(this.slider.value)));
    this.text = make("p", { className: "moment", role: "status" });
    this.marks = make("div", { className: "marks" });
    bar.append(
      button("[", "The end of the pass before ([)", () => this.pass(-1)),
      button("]", "The end of the next pass (])", () => this.pass(1)),
      make("div", { className: "track" }, this.slider, this.marks),
      button("End", "The end of the run (End)", () => this.set(run.last)),
    );
    bar.append(this.text);
    if (matchMedia("(max-width: 60rem)").matches) $("contents").firstElementChild.open = false;
    this.mark();
    addEventListener("resize", () => this.mark());
    this.say();
  }

  /** Mark the ends of the passes below the scrubber, with a number where there is room for one. */
  mark() {
    const { first, last, passes } = this.run, length = Math.max(1, last - first), width = this.marks.offsetWidth;
    let free = -Infinity;
    this.marks.replaceChildren(...this.ends().map((end, index) => {
      const number = passes[index][0], place = (end - first) / length;
      const mark = button(place * width >= free ? `${number}` : "", `The end of pass ${number}`, () => this.set(end));
      if (mark.textContent) free = place * width + 24;
      mark.style.left = `${100 * place}%`;
      return mark;
    }));
  }

  /** Show the run as it was after the record `seq`. */
  set(seq) {
    this.seq = Math.max(this.run.first, Math.min(this.run.last, seq));
    this.slider.value = this.seq;
    for (const [when, element] of this.timed) element.classList.toggle("later", when > this.seq);
    this.draw();
    this.say();
  }

  /** Return the last record of each pass; the last pass ends with the run. */
  ends() {
    const passes = this.run.passes;
    return passes.map(([, , last], index) => (index + 1 < passes.length ? last : this.run.last));
  }

  /** Go to the end of the pass before or behind the moment, and to what the page says about it. */
  pass(by) {
    const passes = this.run.passes, ends = this.ends();
    const index = by > 0 ? ends.findIndex((end) => end > this.seq) : ends.findLastIndex((end) => end < this.seq);
    if (index < 0) return;
    this.set(ends[index]);
    reveal($(`pass-${passes[index][0]}`), "start");
  }

  /** Go to the record before or behind the moment. */
  record(by) {
    const seqs = this.lines.map((line) => Number(line.id.slice("record-".length)));
    const next = by > 0 ? seqs.find((seq) => seq > this.seq) : seqs.findLast((seq) => seq < this.seq);
    if (next !== undefined) this.set(next);
  }

  /** Draw the plan with its statuses. */
  draw() {
    const { plans, statuses, icons } = this.run, atEnd = this.seq === this.run.last;
    for (const step of main.querySelectorAll("[data-step]")) step.classList.remove("later");
    for (const [icon, text, kind] of this.icons) [icon.textContent, icon.className] = [text, kind];
    if (!this.tree) return;
    if (atEnd) {
      this.tree.replaceChildren(...this.whole);
      return;
    }
    const [since, nodes] = plans.findLast(([seq]) => seq <= this.seq) || [0, []];
    const now = new Map(nodes.map((node) => [node[0], node[4]]));
    for (const [seq, step, status] of statuses) if (seq > since && seq <= this.seq) now.set(step, status);
    const rows = nodes.map(([step, anchor, depth, description]) => {
      const status = now.get(step), icon = icons[status] || "?";
      const row = make("li", { className: `depth${Math.min(depth, 4)}` },
        make("span", { className: status, title: status }, `${icon} `), make("a", { href: `#${anchor}` }, `${step} ${description}`));
      row.classList.toggle("current", status === "running");
      return row;
    });
    this.tree.replaceChildren(...(rows.length ? rows : [make("li", { className: "muted" }, "There is no plan yet.")]));
    for (const step of main.querySelectorAll("[data-step]")) step.classList.toggle("later", !now.has(step.dataset.step));
    for (const [icon] of this.icons) {
      const status = now.get(icon.dataset.icon);
      [icon.textContent, icon.className] = [`${icons[status] || "?"} `, status || ""];
    }
  }

  /** Say in words which moment is shown, and mark its line among the records. */
  say() {
    const { passes, totals, last } = this.run;
    const [number, , , phases] = passes.findLast(([, first]) => first <= this.seq) || [0, 0, 0, []];
    const phase = phases.findLast(([seq]) => seq <= this.seq);
    const [, left, allocated, cost] = totals.findLast(([seq]) => seq <= this.seq) || [];
    const line = this.lines.findLast((each) => Number(each.id.slice("record-".length)) <= this.seq);
    const parts = [
      this.seq === last ? (this.run.live ? "as of now" : "the end of the run") : "a past moment",
      number && `pass ${number} of ${passes.length}${phase && this.seq !== last ? ` · ${phase[1]}` : ""}`,
      `record ${this.seq.toLocaleString("en")} of ${last.toLocaleString("en")}`,
      line && line.querySelector("time").textContent,
      allocated && `TTL ${left} of ${allocated}`,
      cost && `$${cost.toFixed(4)}`,
    ];
    this.text.textContent = parts.filter(Boolean).join(" · ");
    this.text.classList.toggle("past", this.seq !== last);
    this.line?.classList.remove("current");
    this.line = line;
    if (line && this.seq !== last) line.classList.add("current");
  }
}

/** Full-text search over all that the page shows or holds back. */
class Search {
  constructor(texts, moment, bar) {
    [this.texts, this.moment, this.matches, this.index] = [texts, moment, [], -1];
    this.input = make("input", { type: "search", placeholder: "Search ( / )", ariaLabel: "Search the report" });
    this.list = make("div", { className: "found", hidden: true, role: "region", ariaLabel: "Search results" });
    this.count = make("p", { role: "status", className: "muted" });
    this.rows = make("ul");
    this.list.append(this.count, this.rows);
    this.input.addEventListener("input", () => this.find());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.input.blur();
        this.go(event.shiftKey ? -1 : 1);
      }
    });
    bar.append(this.input, this.list);
  }

  /** Return each block of text of the page, with the whole of those that are shown in part. */
  units() {
    if (this.known) return this.known;
    const blocks = new Map(), walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      const holder = element.closest("[data-text]") || element.closest("pre, p, li, dt, dd, h1, h2, h3, summary, th, td");
      if (!holder || (holder.dataset.text && blocks.has(holder))) continue;
      const text = holder.dataset.text ? this.texts.of(holder) : (blocks.get(holder) || "") + walker.currentNode.data;
      blocks.set(holder, text);
    }
    this.known = [...blocks].map(([element, text]) => ({ element, text, lower: text.toLowerCase() }));
    return this.known;
  }

  find() {
    const wanted = this.input.value.trim().toLowerCase();
    [this.matches, this.index, this.wanted] = [[], -1, wanted];
    globalThis.CSS?.highlights?.clear();
    this.list.hidden = !wanted;
    if (!wanted) return;
    this.matches = this.units().filter(({ lower }) => lower.includes(wanted));
    this.say();
    this.rows.replaceChildren(...this.matches.slice(0, 100).map((unit, index) => this.row(unit, index)));
  }

  row({ element, text, lower }, index) {
    const at = lower.indexOf(this.wanted), start = Math.max(0, at - 40), end = at + this.wanted.length;
    const where = place(element);
    const row = make("button", { type: "button" },
      make("span", { className: "muted" }, `${where} · `), start ? "…" : "", text.slice(start, at),
      make("b", {}, text.slice(at, end)), text.slice(end, end + 80));
    row.addEventListener("click", () => this.show(index));
    return make("li", {}, row);
  }

  go(by) {
    const { length } = this.matches;
    if (length) this.show((this.index + by + length + (this.index < 0 && by < 0 ? 1 : 0)) % length);
  }

  show(index) {
    this.index = index;
    const { element } = this.matches[index];
    if (element.dataset.text) this.texts.show(element);
    if (element.closest(".later")) this.moment.set(this.moment.run.last);
    this.list.hidden = true;
    reveal(element);
    this.mark(element);
    this.say();
  }

  /** Highlight the matches inside an element. */
  mark(element) {
    if (!globalThis.Highlight) return;
    const ranges = [], walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, lower = node.data.toLowerCase();
      for (let at = lower.indexOf(this.wanted); at >= 0 && ranges.length < 1000; at = lower.indexOf(this.wanted, at + 1)) {
        const range = new Range();
        range.setStart(node, Math.min(at, node.length));
        range.setEnd(node, Math.min(at + this.wanted.length, node.length));
        ranges.push(range);
      }
    }
    CSS.highlights.set("match", new Highlight(...ranges));
    if (ranges.length) scrollTo({ top: scrollY + ranges[0].getBoundingClientRect().top - innerHeight / 2 });
  }

  say() {
    const { length } = this.matches, shown = this.index >= 0 ? `${this.index + 1} of ` : "";
    const more = length > 100 && this.index < 0 ? "; the first 100 are listed" : "";
    this.count.textContent = length ? `${shown}${length} ${length === 1 ? "place" : "places"}${more}` : "Nothing was found.";
    notify(this.count.textContent);
  }

  close() {
    this.input.value = "";
    this.find();
    this.input.blur();
  }
}

/** Return in words where in the report an element is. */
function place(element) {
  const step = element.closest("[data-step]"), pass = element.closest("[id^=pass-]"), section = element.closest("main > section");
  const summary = element.matches("summary") ? null : element.closest("details")?.querySelector("summary");
  const folded = summary?.textContent.split(" · ").slice(0, 2).join(" · ");
  const where = step ? step.dataset.step : pass ? pass.id.replace("-", " ") : section?.querySelector("h2").textContent;
  return [where, folded].filter(Boolean).join(" · ");
}

/** Unfold what an element is in, scroll to it and give it the focus. */
function reveal(element, block = "center") {
  if (!element) return;
  for (let fold = element.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  document.querySelector(".at")?.classList.remove("at");
  if (block === "center") element.classList.add("at");
  if (!element.matches("a, button, summary, [tabindex]")) element.tabIndex = -1;
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block });
}

/** Say something to somebody who does not see the page, too. */
function notify(text) {
  $("news").textContent = text;
}

function button(label, title, action) {
  const made = make("button", { type: "button", title, ariaLabel: title }, label);
  made.addEventListener("click", action);
  return made;
}

/** Go to the next or previous problem of the run. */
function problem(by) {
  const found = [...main.querySelectorAll(".warning, .error")].filter((each) => !each.closest(".records, .later"));
  if (!found.length) return notify("There are no problems.");
  const here = document.querySelector(".at");
  const at = found.indexOf(here);
  const index = at < 0 ? (by > 0 ? 0 : found.length - 1) : (at + by + found.length) % found.length;
  reveal(found[index]);
  notify(`problem ${index + 1} of ${found.length}`);
}

const KEYS = [
  ["[ ]", "the ends of passes"],
  ["{ }", "records"],
  ["End", "the end of the run"],
  ["/", "search"],
  ["n N", "next and previous match, else problem"],
  ["i", "issues"],
  ["1 … 9", "a section, in reading order"],
  ["Esc", "leave the search, or the past moment"],
  ["?", "this help"],
];

function helpDialog() {
  const keys = make("dl");
  for (const [key, text] of KEYS) keys.append(make("dt", {}, make("kbd", {}, key)), make("dd", {}, text));
  const dialog = make("dialog", { ariaLabel: "Keys" }, make("h2", {}, "Keys"), keys, button("Close", "Close", () => dialog.close()));
  document.body.append(dialog);
  return dialog;
}

/** Follow the address: #pass-2, #step-s3, and #record-40, which shows that moment. */
function follow(moment) {
  const name = location.hash.slice(1);
  const record = /^record-(\d+)$/.exec(name);
  if (record) moment.set(Number(record[1]));
  // Not every record has a line of its own.
  const element = record ? moment.line : name && ($(name) || $(decodeURIComponent(name)));
  if (element?.closest(".later")) moment.set(moment.run.last);
  reveal(element, record ? "center" : "start");
}

async function start() {
  const { texts: held, ...run } = await unpack();
  const bar = make("div", { className: "bar", role: "region", ariaLabel: "Moment and search" });
  document.body.append(make("div", { id: "news", role: "status", className: "skip" }));
  document.querySelector(".head").after(bar);
  const texts = new Texts(held), moment = new Moment(run, bar), search = new Search(texts, moment, bar), help = helpDialog();
  bar.append(
    button("◐", "Light or dark", () => {
      const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
      document.documentElement.dataset.theme = dark ? "light" : "dark";
    }),
    button("?", "Keys (?)", () => help.showModal()),
  );
  const actions = {
    "[": () => moment.pass(-1),
    "]": () => moment.pass(1),
    "{": () => moment.record(-1),
    "}": () => moment.record(1),
    End: () => moment.set(run.last),
    "/": () => search.input.focus(),
    n: () => (search.matches.length ? search.go(1) : problem(1)),
    N: () => (search.matches.length ? search.go(-1) : problem(-1)),
    i: () => reveal($("issues"), "start"),
    "?": () => help.showModal(),
    Escape: () => (search.input.value ? search.close() : moment.set(run.last)),
  };
  addEventListener("keydown", (event) => {
    const typing = event.target.matches("input[type=search]");
    if (event.ctrlKey || event.metaKey || event.altKey || help.open || (typing && event.key !== "Escape")) return;
    const number = /^[1-9]$/.test(event.key) && main.querySelectorAll(":scope > section")[event.key - 1];
    const action = number ? () => reveal(number, "start") : actions[event.key];
    if (!action || (event.key === "End" && moment.seq === run.last)) return;
    event.preventDefault();
    action();
  });
  addEventListener("hashchange", () => follow(moment));
  addEventListener("beforeprint", () => {
    for (const fold of main.querySelectorAll("details.change")) fold.open = true;
  });
  if (location.hash) follow(moment);
  document.documentElement.dataset.ready = "";
}

start();
