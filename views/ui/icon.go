package ui

import (
	"context"
	"embed"
	"io"
	"io/fs"
	"strings"

	"github.com/a-h/templ"
)

// The icons are unmodified files of @tabler/icons 3.51.0; their licence is next to them.
//
//go:embed icons/*.svg
var iconFiles embed.FS

// IconMeanings maps each icon to its meaning. An icon has the same meaning on every page, and no
// two icons have the same meaning; a test checks that.
var IconMeanings = map[string]string{
	"alert-circle":     "failure",
	"alert-triangle":   "warning",
	"app-window":       "the app, or a computer",
	"archive":          "archive",
	"arrow-down":       "move down",
	"arrow-right":      "a consequence",
	"arrow-up":         "move up",
	"ban":              "cancel or revoke",
	"bell":             "notifications to staff",
	"bell-ringing":     "reminder",
	"bolt":             "run now",
	"broadcast":        "channels",
	"building-store":   "shops",
	"calendar-event":   "calendar",
	"calendar-time":    "move the opening",
	"chart-line":       "results and reports",
	"check":            "done",
	"chevron-down":     "unfold",
	"chevron-left":     "back",
	"chevron-right":    "further",
	"circle-check":     "all is well",
	"clock":            "time that passes",
	"copy":             "copy to the clipboard",
	"copy-plus":        "use as a model",
	"device-mobile":    "phone",
	"dots":             "more actions",
	"download":         "file to download",
	"eraser":           "clear the filters",
	"external-link":    "leads elsewhere",
	"eye":              "look at",
	"file-text":        "texts of messages",
	"filter":           "filters",
	"fingerprint":      "passkey",
	"flag":             "close",
	"gauge":            "load and rate",
	"gift":             "coupons given to lists",
	"history":          "what was changed",
	"info-circle":      "note",
	"key":              "API keys and other secrets",
	"keyboard":         "redeem codes",
	"language":         "language",
	"layout-dashboard": "overview",
	"list-details":     "as a list",
	"lock":             "lock of a coupon",
	"logout":           "signed out",
	"mail":             "e-mail",
	"menu-2":           "menu",
	"message":          "SMS",
	"minus":            "left out",
	"mood-empty":       "nothing matches",
	"moon":             "dark",
	"packages":         "stock",
	"pencil":           "edit",
	"photo":            "pictures",
	"player-pause":     "pause",
	"player-play":      "resume",
	"plus":             "new",
	"power":            "on or off",
	"printer":          "print",
	"refresh":          "once more",
	"rocket":           "publish",
	"scale":            "balance sheet",
	"search":           "search",
	"send":             "messages that go out",
	"settings":         "settings",
	"shield-lock":      "second factors",
	"speakerphone":     "campaigns",
	"stack-2":          "jobs and queues",
	"sun":              "light",
	"sun-moon":         "as the device",
	"tag":              "coupons",
	"template":         "models of drops",
	"ticket":           "drops",
	"trash":            "delete",
	"user":             "one customer",
	"user-circle":      "own account",
	"user-x":           "erase a customer",
	"users":            "customers",
	"webhook":          "webhook",
	"wifi-off":         "connection lost",
	"world":            "web push",
	"x":                "dismiss or remove",
}

// iconShapes are the shapes inside each icon's <svg>, by file name. They are part of the program
// and never change while it runs.
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

// Icon renders an icon next to a text with the same meaning. It panics if there is no such icon;
// any test that renders the page finds that.
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
