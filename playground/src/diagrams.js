// Small drawings of the networks. They only decorate: the names beside them say the same.

const NODE = (x, y) => `<circle class="node" cx="${x}" cy="${y}" r="4"/>`;
const LINE = (d, name) => `<path class="${name}" d="${d}"/>`;

const DRAWINGS = {
  private: LINE("M8 24C30 4 66 4 88 24", "s1") + LINE("M8 24C30 44 66 44 88 24", "s2") + NODE(8, 24) + NODE(88, 24),
  shared:
    LINE("M8 10C26 10 26 20 38 20", "s1") + LINE("M8 24C20 24 26 24 38 24", "s2") + LINE("M8 40C26 40 26 28 38 28", "s3") +
    LINE("M38 20H88", "s1") + LINE("M38 24H88", "s2") + LINE("M38 28H88", "s3") +
    NODE(8, 17) + NODE(8, 40) + NODE(88, 24) + `<rect class="neck" x="38" y="15" width="22" height="18" rx="3"/>`,
  walk:
    `<path class="wave" d="M20 20a8 8 0 0 1 0 12M26 15a16 16 0 0 1 0 22"/><path class="wave" d="M76 20a8 8 0 0 0 0 12M70 15a16 16 0 0 0 0 22"/>` +
    LINE("M14 26H48", "s1") + LINE("M82 26H48", "s2") + NODE(14, 26) + NODE(82, 26) +
    `<rect class="phone" x="42" y="14" width="12" height="22" rx="2.5"/>`,
  triangle:
    LINE("M48 6L84 42", "s1") + LINE("M84 42H12", "s2") + LINE("M12 42L48 6", "s3") + NODE(48, 6) + NODE(84, 42) + NODE(12, 42),
};

/** The drawing of a topology. */
export function diagram(topology) {
  return `<svg viewBox="0 0 96 48" aria-hidden="true" focusable="false">${DRAWINGS[topology]}</svg>`;
}
