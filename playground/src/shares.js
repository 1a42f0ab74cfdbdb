// Goodput of every flow and subflow: a bar for the eye, and a table for numbers.

import { term } from "./terms.js";

/** Draws bars and tables of all sides. */
export function showShares(barsRoot, tablesRoot, sides, { lines, labelOf, capacity, reference }) {
  barsRoot.replaceChildren(...sides.map((side) => bar(side, lines, capacity, reference)));
  tablesRoot.className = sides.length > 1 ? "pair" : "pair single";
  tablesRoot.replaceChildren(...sides.map((side) => table(side, lines, labelOf, reference)));
}

function bar({ id, cc, rows }, lines, capacity, reference) {
  const root = document.createElement("div");
  root.className = "side";
  root.setAttribute("aria-hidden", "true");
  const name = document.createElement("span");
  name.className = "name";
  name.append(badge(id), ` ${cc}`);
  const track = document.createElement("div");
  track.className = "bar";
  let line = 0;
  for (const part of rows.flatMap((row) => row.subflows)) {
    const segment = document.createElement("i");
    segment.style.width = `${(100 * (part.goodput || 0)) / capacity}%`;
    segment.style.background = `var(${lines[line].colour})`;
    if (lines[line].striped) segment.className = "striped";
    track.append(segment);
    line++;
  }
  if (reference) {
    const mark = document.createElement("b");
    mark.className = "mark";
    mark.style.left = `${(100 * reference.value) / capacity}%`;
    track.append(mark);
  }
  const sum = document.createElement("span");
  sum.className = "sum";
  sum.textContent = `${total(rows).toFixed(1)} of ${round(capacity)} Mbit/s`;
  root.append(name, track, sum);
  return root;
}

function table({ id, cc, scheduler, rows }, lines, labelOf, reference) {
  const root = document.createElement("table");
  const caption = root.createCaption();
  const name = document.createElement("strong");
  name.textContent = cc;
  const how = document.createElement("span");
  how.className = "sum";
  how.textContent = `scheduler ${scheduler}`;
  caption.append(badge(id), name, how);
  const head = root.createTHead().insertRow();
  const first = document.createElement("th");
  first.scope = "col";
  first.textContent = "flow";
  head.append(first, ...columnHeads());
  const body = root.createTBody();
  let line = 0;
  for (const row of rows) {
    const single = row.subflows.length === 1;
    if (!single) {
      const [all, ...rest] = addRow(body, "flow", row.name === "mp" ? "connection" : row.name.replace("mp", "connection "), null, 4);
      all.textContent = decimal(row.goodput, 2);
      for (const cell of rest) cell.textContent = "";
      if (reference) rest.at(-1).textContent = "";
    }
    for (const part of row.subflows) {
      const cells = addRow(body, single ? "flow" : "part", labelOf(row.name, part.subflow), lines[line], 3);
      cells[0].textContent = decimal(part.goodput, 2);
      cells[1].textContent = decimal(part.rttMs, 0);
      cells[2].textContent = decimal(100 * part.retransmitted, 2);
      line++;
    }
  }
  return root;
}

function columnHeads() {
  const heads = [
    ["goodput", "Goodput, Mbit/s"],
    ["rtt", "Mean RTT, ms"],
    ["retransmitted", "Sent again, %"],
  ];
  return heads.map(([key, text]) => {
    const head = document.createElement("th");
    head.scope = "col";
    head.append(term(key, text));
    return head;
  });
}

function addRow(body, kind, label, line, cells) {
  const row = body.insertRow();
  row.className = kind;
  const head = document.createElement("th");
  head.scope = "row";
  if (line) head.innerHTML = stroke(line);
  head.append(label);
  row.append(head);
  return Array.from({ length: Math.min(cells, 3) }, () => row.insertCell());
}

/** A short piece of a line as it looks in the charts. */
export function stroke({ colour, dash }) {
  const pattern = dash ? ` stroke-dasharray="${dash.join(" ")}"` : "";
  return `<svg viewBox="0 0 22 8" aria-hidden="true" focusable="false"><path d="M0 4H22" stroke="var(${colour})" stroke-width="2.5"${pattern}/></svg>`;
}

/** The letter of a side. */
export function badge(id) {
  const letter = document.createElement("span");
  letter.className = `badge ${id}`;
  letter.textContent = id.toUpperCase();
  return letter;
}

export function total(rows) {
  return rows.reduce((sum, row) => sum + (row.goodput || 0), 0);
}

function decimal(value, digits) {
  return Number.isFinite(value) ? value.toFixed(digits) : "–";
}

function round(value) {
  return Number(value.toFixed(1));
}
