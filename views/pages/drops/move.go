package drops

import (
	"context"

	"dropbell/views/ui"
)

func (p Blast) shiftText(ctx context.Context) string {
	l := ui.From(ctx).Locale
	switch {
	case p.Shift > 0:
		return l.T("move.later", l.Duration(p.Shift))
	case p.Shift < 0:
		return l.T("move.earlier", l.Duration(p.Shift))
	}
	return l.T("move.same")
}
