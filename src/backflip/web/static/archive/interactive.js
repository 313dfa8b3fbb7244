// The chart that can be zoomed into, drawn by Plotly.

const place = document.getElementById("interactive");
const style = getComputedStyle(document.documentElement);
const colour = (name) => style.getPropertyValue(name).trim();

/** Returns a colour of the page with a share of opacity. */
function faint(hex, share) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${r}, ${g}, ${b}, ${share})`;
}

function traces(told) {
  return told.lines.flatMap((line) => {
    const shade = colour(`--c${line.colour}`);
    const edge = { mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false, x: line.x, legendgroup: line.label };
    const seeds = line.seeds.map((seed) => ({
      x: line.x, y: seed.y, mode: "lines", name: seed.label, legendgroup: line.label, showlegend: false,
      line: { width: 1, color: faint(shade, 0.3) },
    }));
    return [
      { ...edge, y: line.low },
      { ...edge, y: line.high, fill: "tonexty", fillcolor: faint(shade, 0.18) },
      ...seeds,
      { x: line.x, y: line.y, mode: "lines", name: line.label, legendgroup: line.label, line: { width: 2, color: shade } },
    ];
  });
}

const answer = await fetch(place.dataset.source);
const told = await answer.json();
const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--line") };
await window.Plotly.newPlot(
  place,
  traces(told),
  {
    font: { color: colour("--ink"), family: "system-ui, sans-serif" },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 64, r: 16, t: 16, b: 48 },
    height: 500,
    hovermode: "x unified",
    hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--line") },
    showlegend: told.lines.length > 1,
    legend: { orientation: "h" },
    xaxis: { ...axis, title: { text: told.axis } },
    yaxis: { ...axis, type: told.log ? "log" : "linear" },
  },
  { responsive: true, displayModeBar: false, scrollZoom: true },
);
place.dataset.drawn = "yes";
