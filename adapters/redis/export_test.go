package redis

import (
	"context"
	"log/slog"
	"time"

	"dropbell/domain/delivery"
)

// AloneFor returns limits that so many processes share, on a clock.
func AloneFor(processes int, now func() time.Time) *Alone {
	return NewAlone(AloneConfig{Sharing: func(context.Context, delivery.Channel) int { return processes },
		Counted: func(string, int) {}, Log: slog.New(slog.DiscardHandler), Now: now})
}

func aloneFor(processes int) *Alone { return AloneFor(processes, time.Now) }

// SetClock replaces the clock of Redis.
func (p *DomainPacer) SetClock(at func() time.Time) { p.at = at }
