// Replaces static figures of the page by interactive plots of the same series, in the same styles.

const data = JSON.parse(byId("data").textContent);
// Changes as well where a dark page is printed, which is light.
const dark = matchMedia("screen and (prefers-color-scheme: dark)");
const narrow = () => innerWidth < 640;
// On a narrow screen, a long name loses its middle, because names that are alike differ at their ends.
const LONGEST_NAME = 26;
const brief = (name) => (narrow() && name.length > LONGEST_NAME ? name.slice(0, 14) + "…" + name.slice(15 - LONGEST_NAME) : name);

async function loadLibrary() {
  const script = document.createElement("script");
  script.textContent = await (await inflated("library", "gzip")).text();
  document.head.append(script);
}

function baseLayout() {
  return {
    paper_bgcolor: css("--page"), plot_bgcolor: css("--page"), showlegend: false,
    font: { color: css("--ink"), size: narrow() ? 11 : 13, family: getComputedStyle(document.body).fontFamily },
    hovermode: "closest", dragmode: narrow() ? false : "zoom",
  };
}
const legendAbove = () => ({ orientation: "h", x: 0, xanchor: "left", y: 1, yref: "container", yanchor: "top", traceorder: "normal", font: { size: 12 }, itemclick: false, itemdoubleclick: false });
const axis = () => ({ gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true });
const config = { displaylogo: false, displayModeBar: false, doubleClick: false, plotlyServerURL: "" };

async function drawAll() {
  drawGoodput();
  if (data.runs.length) await drawTime();
}

async function start() {
  addSaveButtons();
  try {
    await loadLibrary();
  } catch (error) {
    console.warn("the figures stay static: " + error);
    return;
  }
  if (data.runs.length) {
    setUpTime();
    [view.from, view.to] = [0, end()];
  }
  await drawAll();
  if (data.runs.length) listenToZoom();
  for (const hint of document.querySelectorAll(".live")) hint.hidden = false;
  dark.addEventListener("change", drawAll);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; drawAll(); } });
  document.documentElement.dataset.ready = "";
}
// Two frames later the text and the static figures are on screen.
requestAnimationFrame(() => requestAnimationFrame(start));
