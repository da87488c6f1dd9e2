package ui

import (
	"context"
	"embed"
	"io"
	"io/fs"
	"strings"

	"github.com/a-h/templ"
)

// The icons are files of @tabler/icons 3.51.0, unmodified; their licence lies
// beside them.
//
//go:embed icons/*.svg
var iconFiles embed.FS

// iconShapes are the shapes inside each icon's <svg>, by file name. The set is
// part of the program and never changes while it runs.
var iconShapes = readIcons()

func readIcons() map[string]string {
	shapes := map[string]string{}
	names, _ := fs.Glob(iconFiles, "icons/*.svg") // the pattern is well formed
	for _, name := range names {
		raw, _ := iconFiles.ReadFile(name) // listed just now
		_, inner, _ := strings.Cut(string(raw), ">")
		inner, _, _ = strings.Cut(inner, "</svg>")
		inner = strings.Join(strings.Fields(inner), " ")
		inner = strings.ReplaceAll(inner, `<path stroke="none" d="M0 0h24v24H0z" fill="none" /> `, "")
		shapes[strings.TrimSuffix(strings.TrimPrefix(name, "icons/"), ".svg")] = inner
	}
	return shapes
}

// Icon draws an icon beside a text that says the same. It panics if there is
// no such icon, which any test that renders the page finds.
func Icon(name string) templ.Component {
	shape, ok := iconShapes[name]
	if !ok {
		panic("no icon " + name)
	}
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, `<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">`+shape+`</svg>`)
		return err
	})
}
