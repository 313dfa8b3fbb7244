// Plotly brings the style of its maps along, which no chart here needs and the policy would refuse.

const append = document.head.appendChild;
document.head.appendChild = (element) => (element.tagName === "STYLE" ? element : append.call(document.head, element));
document.addEventListener("DOMContentLoaded", () => { delete document.head.appendChild; });
