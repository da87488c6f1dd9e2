package static

import "encoding/json"

// Manifest makes the console installable as an app. It is generated, because it names icons by
// their hashed addresses.
const Manifest = "manifest.webmanifest"

// Colours of the surroundings of the page, as in app.css (--surface, --bg).
const (
	LightTheme = "#ffffff"
	DarkTheme  = "#15191f"
	background = "#f6f7f9"
)

type manifestIcon struct {
	Src     string `json:"src"`
	Sizes   string `json:"sizes"`
	Type    string `json:"type"`
	Purpose string `json:"purpose"`
}

type manifestShortcut struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// manifest writes the web app manifest. Its id does not change with its address, so that an
// installed app stays the same app.
func (a *Assets) manifest() ([]byte, error) {
	icon := func(name, size, kind, purpose string) manifestIcon {
		return manifestIcon{a.URL(name), size, kind, purpose}
	}
	return json.Marshal(struct {
		ID         string             `json:"id"`
		Name       string             `json:"name"`
		ShortName  string             `json:"short_name"`
		StartURL   string             `json:"start_url"`
		Scope      string             `json:"scope"`
		Display    string             `json:"display"`
		Background string             `json:"background_color"`
		Theme      string             `json:"theme_color"`
		Icons      []manifestIcon     `json:"icons"`
		Shortcuts  []manifestShortcut `json:"shortcuts"`
	}{"/", "Dropbell", "Dropbell", "/", "/", "standalone", background, LightTheme, []manifestIcon{
		icon("icon-192.png", "192x192", "image/png", "any"), icon("icon-512.png", "512x512", "image/png", "any"),
		icon("icon-maskable-192.png", "192x192", "image/png", "maskable"), icon("icon-maskable-512.png", "512x512", "image/png", "maskable"),
		icon("favicon.svg", "any", "image/svg+xml", "any"),
	}, []manifestShortcut{{"Drops", "/templates"}, {"Campaigns", "/campaigns"}}})
}
