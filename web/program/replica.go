package program

import (
	"context"

	"dropbell/adapters/postgres"
	"dropbell/web/console/shell"
)

// replica returns the database that the console's reports are read from; nil = the primary.
func (p *program) replica() shell.Replica {
	if p.Replica == nil {
		return nil
	}
	return reports{p.Replica}
}

// reports lets the console's reports read the replica.
type reports struct{ replica *postgres.Replica }

// Begin is part of [shell.Replica].
func (p reports) Begin(ctx context.Context, after string) (context.Context, shell.ReportSource) {
	var position postgres.Position
	if after != "" {
		var err error
		if position, err = postgres.ParsePosition(after); err != nil {
			position = postgres.Everywhere
		}
	}
	ctx, reading, end := p.replica.Begin(ctx, position)
	return ctx, reportSource{reading, p.replica, end}
}

// Position is part of [shell.Replica].
func (p reports) Position(ctx context.Context) string {
	position, err := p.replica.Position(ctx)
	if err != nil {
		position = postgres.Everywhere
	}
	return position.String()
}

type reportSource struct {
	*postgres.Reading
	replica *postgres.Replica
	end     func()
}

// Again is part of [shell.ReportSource].
func (g reportSource) Again() { g.replica.Again() }

// End is part of [shell.ReportSource].
func (g reportSource) End() { g.end() }
