package work

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
)

// ProcessGoneAfter is how long a process that does not renew its row counts as running.
const ProcessGoneAfter = 30 * time.Second

// A Process is one running process.
type Process struct {
	ID      uuid.UUID
	Program string
	// Channels are the channels whose messages the process delivers.
	Channels delivery.ChannelSet
}

// Processes keeps the running processes.
type Processes struct{ *pg.DB }

// NewProcesses returns the processes of db.
func NewProcesses(db *pg.DB) Processes { return Processes{db} }

// Enter stores or renews the row of the process, and removes rows that were not renewed for an
// hour.
func (s Processes) Enter(ctx context.Context, p Process) error {
	_, err := s.Pool.Exec(ctx, `with gone as (delete from processes where seen_at < clock_timestamp() - interval '1 hour' and id <> $1)
		insert into processes (id, program, channels) values ($1, $2, $3)
		on conflict (id) do update set seen_at = clock_timestamp()`, p.ID, p.Program, int16(p.Channels))
	return pg.Translate(err)
}

// Leave removes the process.
func (s Processes) Leave(ctx context.Context, p Process) error {
	_, err := s.Pool.Exec(ctx, `delete from processes where id = $1`, p.ID)
	return pg.Translate(err)
}

// Others returns the channels of each other running process of the same program.
func (s Processes) Others(ctx context.Context, p Process) ([]delivery.ChannelSet, error) {
	rows := pg.Rows(ctx, s.Pool, `select channels from processes
		where program = $2 and id <> $1 and seen_at > clock_timestamp() - $3::interval`, p.ID, p.Program, ProcessGoneAfter)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (delivery.ChannelSet, error) {
		var channels int16
		err := row.Scan(&channels)
		return delivery.ChannelSet(channels), err
	})
	return list, pg.Translate(err)
}
