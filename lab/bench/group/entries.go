package group

import (
	"context"
	"fmt"
	"time"

	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/draw"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// drawn finds one template, as a draw.
type drawn struct{ drop template.Template }

func (d drawn) Template(context.Context, int64) (template.Template, error) { return d.drop, nil }

// enter measures entries of a draw beside reservations, both of users who have none yet. An entry includes its
// signed receipt. It returns entries and reservations per second.
func enter(ctx context.Context, s *stack.Stack, templateID int64, callers int, lasting time.Duration) (entries, reservations, receipts float64, err error) {
	if _, err := s.SQL.Exec(ctx, `truncate reservations, outbox, draws, draw_entries, draw_counts, draw_growth`); err != nil {
		return 0, 0, 0, err
	}
	if _, err := s.SQL.Exec(ctx, `insert into draws (template_id, template_version, key, source, cards, opens_at, closes_at)
		values ($1, 1, 'bench', 'commit', '{card}', now() - interval '1 hour', now() + interval '1 day')`, templateID); err != nil {
		return 0, 0, 0, err
	}
	keys, err := draw.NewKeys("only this benchmark signs receipts with it")
	if err != nil {
		return 0, 0, 0, err
	}
	store := dropsdb.NewEntries(s.DB, postgres.Grouping{})
	defer store.Close()
	t := drawn{template.Template{ID: templateID, Stored: template.Published}}
	t.drop.OpeningMode = template.ByDraw
	service := &draw.Service{Store: store, Templates: t, Keys: keys}
	e, err := scenario.Drive(callers, lasting, func(i int64) error {
		_, created, err := service.Enter(ctx, draw.Wish{TemplateID: templateID, UserID: user.ID(i)})
		if err == nil && !created {
			err = fmt.Errorf("user %d had entered", i)
		}
		return err
	})
	if err != nil {
		return 0, 0, 0, err
	}
	reserve := dropsdb.NewReservations(s.DB, postgres.Grouping{})
	defer reserve.Close()
	r, err := scenario.Drive(callers, lasting, func(i int64) error {
		v, err := reserve.Reserve(ctx, reminder.Change{TemplateID: templateID, UserID: user.ID(i), Bits: reminder.StoredBitmap(1)})
		if err == nil && !v.Applied {
			err = fmt.Errorf("refused: %+v", v)
		}
		return err
	})
	if err != nil {
		return 0, 0, 0, err
	}
	signed, err := scenario.Drive(callers, lasting/4, func(i int64) error {
		_, err := keys[0].Sign(draw.Receipt{Drop: templateID, EnteredAt: time.Now()}.Text())
		return err
	})
	return e.PerSecond, r.PerSecond, signed.PerSecond, err
}
