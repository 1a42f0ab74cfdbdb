// Buttons that save a figure of the page as PNG or SVG, as it is shown.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// What a style sheet decides in the drawing of the topology.
const DRAWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "paint-order",
  "font-family", "font-size", "font-weight", "text-anchor"];
const PIXELS_PER_POINT = 2;

function offer(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// A drawing that needs no style sheet, on the background of the page.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const box = svg.viewBox.baseVal, margin = svg.classList.contains("topology") ? 8 : 0;
  copy.setAttribute("viewBox", [box.x - margin, box.y - margin, box.width + 2 * margin, box.height + 2 * margin].join(" "));
  copy.setAttribute("width", box.width + 2 * margin);
  copy.setAttribute("height", box.height + 2 * margin);
  copy.removeAttribute("class");
  copy.style.cssText = "background:" + css("--page");
  if (svg.classList.contains("topology")) {
    const from = svg.querySelectorAll("*"), to = copy.querySelectorAll("*");
    from.forEach((element, i) => {
      const style = getComputedStyle(element);
      to[i].style.cssText += DRAWN.map((name) => name + ":" + style.getPropertyValue(name)).join(";");
    });
  }
  return new XMLSerializer().serializeToString(copy).replace(/var\((--[\w-]+)\)/g, (_, name) => css(name));
}

async function rasterised(text) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = PIXELS_PER_POINT * image.width;
  canvas.height = PIXELS_PER_POINT * image.height;
  const context = canvas.getContext("2d");
  context.fillStyle = css("--page");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

async function drawingOf(box) {
  const target = box.querySelector(".js-plotly-plot") ?? (box.classList.contains("js-plotly-plot") ? box : null);
  if (!target) return standalone([...box.querySelectorAll("svg")].find((svg) => svg.getClientRects().length));
  const { width, height } = target.querySelector(".main-svg").getBoundingClientRect();
  const url = await Plotly.toImage(target, { format: "svg", width: Math.round(width), height: Math.round(height) });
  return decodeURIComponent(url.slice(url.indexOf(",") + 1));
}

async function pictureOf(box, kind) {
  const text = await drawingOf(box);
  return kind === "png" ? rasterised(text) : new Blob([text], { type: "image/svg+xml" });
}

function addSaveButtons() {
  for (const box of document.querySelectorAll("[data-figure]")) {
    const tools = document.createElement("div");
    tools.className = "tools";
    for (const kind of ["png", "svg"]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind.toUpperCase();
      button.setAttribute("aria-label", "Save " + box.dataset.figure + " as " + kind.toUpperCase());
      button.addEventListener("click", async () => offer(await pictureOf(box, kind), box.dataset.file + "." + kind));
      tools.append(button);
    }
    box.after(tools);
  }
}
