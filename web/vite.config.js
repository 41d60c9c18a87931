// The source in, three files with names that never change out: index.html, app.js, app.css. One bundle that works as a
// file of its own and inside a saved page, so it is a plain script that runs when the document has been read.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: {
    outDir: process.env.REGARD_PAGE ?? "../regard/view/page",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        format: "iife",
        entryFileNames: "app.js",
        assetFileNames: "app[extname]",
      },
    },
  },
  plugins: [
    {
      name: "a plain deferred script",
      transformIndexHtml: {
        order: "post",
        handler: (page) => page.replace(/<script type="module"( crossorigin)?/, "<script defer").replaceAll(" crossorigin", ""),
      },
    },
  ],
});
