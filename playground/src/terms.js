// What words mean, shown where they are pointed at, tapped or focused.

const TERMS = {
  mptcp: "Multipath TCP (RFC 8684): one connection that uses several TCP connections, its subflows, one per path.",
  cc: "The rule by which a sender changes its window: up while packets arrive, down when they are lost. Coupled rules look at all subflows of a connection together.",
  scheduler: "Decides which subflow carries the next packet, among those whose window has room.",
  goodput: "Application data delivered in order, per second. Retransmissions and headers do not count.",
  cwnd: "Congestion window (cwnd): how many packets a sender may have in flight, sent but not yet acknowledged.",
  rtt: "Round-trip time (RTT): from sending a packet to its acknowledgement; smoothed, as TCP uses it. It is the base RTT plus the time in queues.",
  bdp: "Bandwidth-delay product (BDP): rate times base RTT, in packets. A window of one BDP just fills the path without a queue.",
  baseRtt: "The round-trip time with empty queues: twice the delay of the path.",
  queue: "Packets that wait for a link. What arrives at a full queue is lost, which is how TCP notices congestion.",
  queueLimit: "How many packets may wait for the link. What arrives at a full queue is lost.",
  rate: "How many bits the link can send per second.",
  delay: "The time that a packet is on the way, in one direction, without waiting.",
  loss: "Packets lost at random, as on a radio link, whatever the load.",
  retransmitted: "Packets that had to be sent again, in percent of all packets that were sent.",
  reno: "Classic TCP: one packet more per RTT, half the window at a loss.",
  walk: "Five walks with the same coverage and different fading. mptcplab walk makes such tables.",
  seed: "Where random numbers begin. The same seed gives the same packets, on every computer.",
  fair: "The bottleneck's rate divided by the number of connections: a fair multipath connection takes no more than one TCP connection.",
};

/** A word with an explanation, for the mouse, the keyboard and screen readers. */
export function term(key, text) {
  const word = document.createElement("span");
  decorate(word, key);
  word.prepend(text);
  return word;
}

/** A word in the label of a slider: its explanation is also the slider's, and appears when the keyboard is there. */
export function labelTerm(key, text, input) {
  const word = term(key, text);
  const tip = word.querySelector(".tip");
  word.removeAttribute("tabindex");
  word.removeAttribute("role");
  word.removeAttribute("aria-describedby");
  input.setAttribute("aria-describedby", tip.id);
  input.addEventListener("focus", () => {
    input.parentElement.classList.remove("closed");
    show(word, tip);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") input.parentElement.classList.add("closed");
  });
  return word;
}

/** Adds explanations to all elements below `root` with `data-term`. */
export function explain(root) {
  for (const word of root.querySelectorAll("[data-term]")) decorate(word, word.dataset.term);
}

let count = 0;

function decorate(word, key) {
  if (!TERMS[key]) throw new Error(`no explanation of ${key}`);
  const tip = document.createElement("span");
  tip.role = "tooltip";
  tip.id = `tip-${++count}`;
  tip.className = "tip";
  tip.textContent = TERMS[key];
  word.removeAttribute("data-term");
  word.classList.add("term");
  word.tabIndex = 0;
  word.setAttribute("role", "note");
  word.setAttribute("aria-describedby", tip.id);
  word.append(tip);
  word.addEventListener("keydown", (event) => {
    if (event.key === "Escape") word.classList.add("closed");
  });
  for (const event of ["pointerenter", "focus"]) word.addEventListener(event, () => show(word, tip));
}

// Keeps the explanation inside the window.
function show(word, tip) {
  word.classList.remove("closed");
  tip.style.setProperty("--shift", "0px");
  const { left, right } = tip.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  const shift = right > width - 8 ? width - 8 - right : left < 8 ? 8 - left : 0;
  tip.style.setProperty("--shift", `${shift}px`);
}
