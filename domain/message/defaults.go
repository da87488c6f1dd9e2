package message

import (
	"embed"
	"encoding/json"
	"strings"
)

//go:embed defaults/*.json
var defaultFiles embed.FS

// defaults are the built-in texts by language, kind and channel. The kind "" is for kinds without
// texts of their own.
var defaults = readDefaults()

func readDefaults() map[string]map[Kind]map[Channel]Text {
	all := map[string]map[Kind]map[Channel]Text{}
	files, _ := defaultFiles.ReadDir("defaults") // part of the program, as a test shows
	for _, f := range files {
		raw, _ := defaultFiles.ReadFile("defaults/" + f.Name())
		texts := map[Kind]map[Channel]Text{}
		_ = json.Unmarshal(raw, &texts)
		all[strings.TrimSuffix(f.Name(), ".json")] = texts
	}
	return all
}

// Default returns the built-in text; false if there is none in the language.
func Default(k Key) (Text, bool) {
	kinds, ok := defaults[k.Language]
	if !ok {
		return Text{}, false
	}
	texts, ok := kinds[k.Kind]
	if !ok {
		texts = kinds[""]
	}
	t, ok := texts[k.Channel]
	return t, ok
}
