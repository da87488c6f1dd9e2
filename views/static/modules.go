package static

import (
	"encoding/json"
	"strings"
)

// noble is the folder of the vendored modules, npm's @noble/curves and @noble/hashes.
const noble = "vendor/noble-2.4.0/"

// Modules is an import map in JSON: it leads the names by which the vendored modules import each other
// to their addresses.
func (a *Assets) Modules() string {
	imports := map[string]string{}
	for name, url := range a.byName {
		if rest, ok := strings.CutPrefix(name, noble); ok && strings.HasSuffix(name, ".js") {
			imports["@noble/"+rest], imports[Prefix+name] = url, url
		}
	}
	raw, _ := json.Marshal(map[string]any{"imports": imports}) // texts only
	return string(raw)
}
