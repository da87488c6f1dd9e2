package work

import (
	"context"
	"errors"
	"time"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/app"
	"dropbell/domain/housekeeping"
	"dropbell/domain/task"
)

// House removes rows past their retention.
type House struct {
	workdb.Housekeeping
	Keep workdb.Retention
}

// houseEvery is how often the periodic chores are queued.
const houseEvery = housekeeping.Every

// scheduleHouse queues the periodic chores; several workers queue them once.
func (d Deps) scheduleHouse(ctx context.Context) error {
	bucket := app.Clock().Truncate(houseEvery).Format(time.RFC3339)
	return d.Queue.Enqueue(ctx, task.House(task.CleanUp, bucket), task.House(task.Recount, bucket))
}

// eventLife is how long handled events stay on the wire for late readers.
const eventLife = time.Hour

// cleanUp removes expired data.
func (d Deps) cleanUp(ctx context.Context, _ []byte) error {
	// Redis first: trimming its memory does not wait for trimming on disk. A failed part does
	// not keep the other parts from running.
	trimmed, err1 := d.Relay.bus.Trim(ctx, eventLife)
	pruned, err2 := d.Queue.PruneArchive(ctx, 7*24*time.Hour)
	n, err3 := d.House.Clean(ctx, d.House.Keep, 0)
	d.Log.Info("cleaned up", "rows", n, "events", trimmed, "archived_tasks", pruned)
	return errors.Join(err1, err2, err3, d.tellBehind(ctx))
}

// tellBehind logs the steps that did not finish in their time.
func (d Deps) tellBehind(ctx context.Context) error {
	steps, err := d.House.Steps(ctx)
	for _, s := range steps {
		if !s.Behind() {
			continue
		}
		line := []any{"step", s.Name, "behind", s.BehindFor(app.Clock()).Truncate(time.Second).String(), "removed", s.Removed, "per_second", int64(s.PerSecond)}
		if s.Left != nil {
			line = append(line, "left", *s.Left)
		}
		d.Log.Warn("a step of housekeeping fell behind: it did not finish in its time, and goes on in the next run", line...)
	}
	return err
}
