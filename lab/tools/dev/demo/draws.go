package demo

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/pause"
)

// firstEntrant is the number of the first made-up user who enters the demo's draw.
const firstEntrant = 20_000_001

// FillDraw stores n entries of made-up users in a draw that takes entries, once its card is published. It
// writes rows: that many requests would take longer than the draw is open.
func FillDraw(ctx context.Context, conn *pgx.Conn, id string, n int) error {
	template, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return err
	}
	for {
		tag, err := conn.Exec(ctx, `with taking as (select template_id from draws where template_id = $1 and state = 'open' for share), stored as (
			insert into draw_entries (template_id, user_id, ticket, salt, entered_at)
			select template_id, $2::bigint + i, gen_random_uuid(), gen_random_uuid(), date_trunc('second', clock_timestamp()) from taking, generate_series(0, $3::int - 1) i
			on conflict do nothing returning template_id)
			insert into draw_counts (template_id, shard, entered) select template_id, 15, count(*) from stored group by template_id
			on conflict (template_id, shard) do update set entered = draw_counts.entered + excluded.entered`, template, firstEntrant, n)
		if err != nil || tag.RowsAffected() > 0 {
			return err
		}
		if !pause.For(ctx, 100*time.Millisecond) {
			return fmt.Errorf("the card of draw %s is not published: %w", id, context.Cause(ctx))
		}
	}
}
