package i18n

import (
	"encoding/json"
	"fmt"
	"io/fs"
)

// catalogue merges the files of a language, such as en.json and en.proof.json. It fails if two
// files have the same key, because one of the two texts would be lost.
func catalogue(from fs.FS, tag string) (map[string]string, error) {
	names, err := fs.Glob(from, tag+".*.json")
	if err != nil {
		return nil, err
	}
	merged := map[string]string{}
	for _, name := range append([]string{tag + ".json"}, names...) {
		raw, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, err
		}
		var part map[string]string
		if err := json.Unmarshal(raw, &part); err != nil {
			return nil, fmt.Errorf("catalogue %s: %w", name, err)
		}
		for key, text := range part {
			if _, taken := merged[key]; taken {
				return nil, fmt.Errorf("catalogue %s: another file of the language has %q too", name, key)
			}
			merged[key] = text
		}
	}
	return merged, nil
}
