package work

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/event/hook"
)

// storeEvents draws the missing numbers of events and stores the events in the order of the
// list. It returns their ids. Ids are in the order of commits: a listener that has read an id
// misses no smaller id.
func storeEvents(ctx context.Context, tx pgx.Tx, list []hook.Event) (ids []int64, err error) {
	n := len(list)
	templates, campaigns, shops := make([]int64, n), make([]int64, n), make([]int64, n)
	types, subjects, payloads := make([]string, n), make([]string, n), make([]string, n)
	sequences, items, ats := make([]int64, n), make([]int32, n), make([]time.Time, n)
	drawn, err := drawNumbers(ctx, tx, list)
	if err != nil {
		return nil, err
	}
	for i, e := range list {
		if e.Sequence == 0 {
			e.Sequence, drawn = drawn[0], drawn[1:]
		}
		payload, err := e.Payload()
		if err != nil {
			return nil, fmt.Errorf("payload of %s: %w", e.Type, err)
		}
		templates[i], campaigns[i], shops[i] = e.TemplateID, e.CampaignID, e.Shop
		types[i], subjects[i], payloads[i] = string(e.Type), e.Subject, string(payload)
		sequences[i], items[i], ats[i] = e.Sequence, int32(e.Items), e.At
	}
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dropbell:hook-events', 0))`); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, storeEventsSQL, pgx.StrictNamedArgs{"templates": templates, "campaigns": campaigns, "shops": shops, "types": types,
		"subjects": subjects, "payloads": payloads, "sequences": sequences, "items": items, "ats": ats, "test": string(hook.TestEvent)})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// storeEventsSQL stores the events that a shop's endpoint wants, and returns their ids.
const storeEventsSQL = `
with told as (
    select coalesce(t.shop_number, c.shop_number, nullif(f.given, 0)) as shop, f.*
    from unnest(@templates::bigint[], @campaigns::bigint[], @shops::bigint[], @types::text[], @subjects::text[], @payloads::text[],
        @sequences::bigint[], @items::int[], @ats::timestamptz[])
        with ordinality as f (template_id, campaign_id, given, type, subject, payload, sequence, items, at, n)
    left join templates t on t.id = nullif(f.template_id, 0)
    left join campaigns c on t.id is null and c.id = nullif(f.campaign_id, 0)
)
insert into hook_events (shop_number, type, subject, sequence, at, items, payload)
select shop, type, subject, sequence, at, items, payload from told
where type = @test or exists (select from hook_wants w where w.shop_number = told.shop and (cardinality(w.types) = 0 or told.type = any(w.types)))
order by n returning id`

// drawNumbers returns a number for each event that has none.
func drawNumbers(ctx context.Context, tx pgx.Tx, list []hook.Event) ([]int64, error) {
	n := 0
	for _, e := range list {
		if e.Sequence == 0 {
			n++
		}
	}
	if n == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `select nextval('hook_sequence') from generate_series(1, $1)`, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
