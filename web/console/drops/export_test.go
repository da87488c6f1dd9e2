package drops

import (
	"context"

	"dropbell/views/i18n"
	"dropbell/web/console/shell"
)

// Names for tests that go through the whole console.

// PastFaces is how many states a browser may be behind.
const PastFaces = pastRenderings

// ValuesOf writes a template as its form does.
var ValuesOf = valuesOf

// Snapshots is one state of a cockpit.
type Snapshots = snapshots

// Look looks at a drop whose cockpit was in the state before.
func Look(ctx context.Context, sh *shell.Shell, d Deps, templateID int64, before *Snapshots) (*Snapshots, error) {
	return newHandlers(sh, d).readSnapshots(ctx, templateID, before)
}

// Patch returns the values that change a page from the state from to this state.
func (d *snapshots) Patch(from string, l *i18n.Locale) []byte { return d.patch(from, l) }

// In returns the values in a language.
func (d *snapshots) In(l *i18n.Locale) map[string]string { return d.in(l) }

// Past is how many earlier states are kept.
func (d *snapshots) Past() int { return len(d.past) }
