// What the theme leaves out for readers with a keyboard or a screen reader.
window.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("pre, .table-wrapper, div.math").forEach((block) => {
    if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
  });
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "All pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
});
