package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/staff"
)

// dueTestSQL returns a campaign whose test is due for a look, with the look.
const dueTestSQL = `
select id, look from (
    select c.id, c.started_at, case
        when c.started_at + make_interval(mins => (c.content->'test'->>'minutes')::int) <= clock_timestamp() then @at_end::int
        when (c.content->'test'->>'early')::boolean
            and c.started_at + make_interval(mins => (c.content->'test'->>'minutes')::int) / 2 <= clock_timestamp() then @halfway::int end as look
    from campaigns c where c.state in ('running', 'paused') and c.content ? 'test' and not (c.content->'test') ? 'winner' and c.started_at is not null
) c where look is not null and not exists (select from campaign_decisions d where d.campaign_id = c.id and d.look = c.look)
order by started_at, id limit 1`

// DecideNext makes the look that is due at a test, and stores its decision with the numbers. It
// returns false if none is due. Of two workers one stores the decision. The remaining recipients
// are released by [Campaigns.ReleaseDecided].
func (s Campaigns) DecideNext(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, countFor)
	defer cancel()
	var id int64
	var look campaign.Look
	err := s.Pool.QueryRow(ctx, dueTestSQL, pgx.StrictNamedArgs{"at_end": campaign.AtEnd, "halfway": campaign.Halfway}).Scan(&id, &look)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, pg.Translate(err)
	}
	var n *counting
	var arms [2]campaign.Arm
	if err := s.Tx(ctx, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, `set transaction isolation level repeatable read read only`); err != nil {
			return err
		}
		if n, err = countResults(ctx, tx, id); err != nil || n.Content.Test == nil {
			return err
		}
		arms, err = n.arms(ctx, tx)
		return err
	}); err != nil || n.Content.Test == nil {
		return false, err
	}
	d := campaign.DecideTest(*n.Content.Test, look, n.to, arms[0], arms[1])
	return true, pg.Translate(s.storeDecision(ctx, n.Campaign, d))
}

// arms are the numbers of the versions A and B by which the test is decided.
func (n *counting) arms(ctx context.Context, tx pgx.Tx) (arms [2]campaign.Arm, err error) {
	for i := range arms {
		t := n.tallies[i-delivery.Remaining]
		arms[i] = campaign.Arm{Variant: i, Assigned: t.Assigned, Sent: t.Sent, Did: t.Opened}
		if n.Content.Test.By == delivery.ByClaimed {
			arms[i].Did = t.Claimed
		}
	}
	if n.Content.Test.By != delivery.ByRevenue {
		return arms, nil
	}
	var currency string
	if err := tx.QueryRow(ctx, `select currency from templates where id = $1`, n.TemplateID()).Scan(&currency); err != nil {
		return arms, err
	}
	for i := range arms {
		arms[i].Did, arms[i].Currency = 0, currency
	}
	return arms, n.earned(ctx, tx, func(e earning) {
		if group := n.Content.Group(n.ID, e.user); group >= 0 && n.audience.Contains(uint64(e.user)) {
			a := &arms[group]
			a.Did++
			a.Revenue += e.amount
			a.Squares += float64(e.amount) * float64(e.amount)
		}
	})
}

// decideSQL returns nothing; no row changes if the look is stored already.
const decideSQL = `
insert into campaign_decisions (campaign_id, look, at, winner, arms) values (@campaign, @look, @at, @winner, @arms)
on conflict (campaign_id, look) do nothing`

// winnerSQL returns nothing; no row changes if the campaign has a winner, or is over.
const winnerSQL = `
update campaigns set content = jsonb_set(content, '{test,winner}', to_jsonb(@winner::int)), version = version + 1, updated_at = now()
where id = @campaign and state in ('running', 'paused') and content ? 'test' and not (content->'test') ? 'winner'`

func (s Campaigns) storeDecision(ctx context.Context, c campaign.Campaign, d campaign.TestDecision) error {
	arms, err := json.Marshal(d.Arms)
	if err != nil {
		return err
	}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if d.Winner != nil {
			tag, err := tx.Exec(ctx, winnerSQL, pgx.StrictNamedArgs{"campaign": c.ID, "winner": *d.Winner})
			if err != nil || tag.RowsAffected() == 0 {
				return err // another worker was faster, or the campaign is over
			}
		}
		tag, err := tx.Exec(ctx, decideSQL, pgx.StrictNamedArgs{"campaign": c.ID, "look": d.Look, "at": d.At, "winner": d.Winner, "arms": arms})
		if err != nil || tag.RowsAffected() == 0 || d.Winner == nil {
			return err
		}
		if err := pg.InsertAudit(ctx, tx, staff.Entry{Actor: staff.System(), Action: "campaign.decide", ObjectKind: "campaign", ObjectID: strconv.FormatInt(c.ID, 10),
			ShopNumber: c.Shop, After: map[string]any{"winner": [...]string{"a", "b"}[*d.Winner], "look": d.Look, "by": c.Content.Test.By, "arms": d.Arms}}); err != nil {
			return err
		}
		return announceCampaign(ctx, tx, event.CampaignChanged, c)
	})
}

// releaseSQL makes the batches of decided campaigns ready in which recipients wait for the
// decision, and returns the channels of the batches. A batch that a worker holds is made ready once
// the worker has given it back.
const releaseSQL = `
with waiting as (
    select b.id from campaigns c join batches b on b.kind = 'campaign' and b.owner_id = c.id and b.channel = c.channel
    where c.state = 'running' and c.settled_at is null and (c.content->'test') ? 'winner' and b.state = 'ready' and not b.held and b.failed_count > 0
        and exists (select from exceptions e where e.batch_id = b.id and e.outcome = 'failed' and e.reason = @reason
            and (e.next_retry_at > clock_timestamp() or b.next_run_at > clock_timestamp()))
    order by b.id limit @limit for update of b skip locked
), woken as (
    update exceptions e set next_retry_at = clock_timestamp() from waiting w
    where e.batch_id = w.id and e.outcome = 'failed' and e.reason = @reason and e.next_retry_at > clock_timestamp()
)
update batches b set next_run_at = clock_timestamp() from waiting w where b.id = w.id returning b.channel`

// releaseLimit is how many batches one statement releases.
const releaseLimit = 200

// ReleaseDecided makes the recipients who waited for the decision of a test ready, and returns the
// channels of their batches. It may be repeated.
func (s Campaigns) ReleaseDecided(ctx context.Context) (channels []delivery.Channel, err error) {
	for {
		found, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, releaseSQL, pgx.StrictNamedArgs{"reason": delivery.ReasonTest, "limit": releaseLimit}), pgx.RowTo[delivery.Channel])
		if err != nil {
			return channels, pg.Translate(err)
		}
		channels = append(channels, found...)
		if len(found) < releaseLimit {
			return channels, nil
		}
	}
}

// Decisions returns the looks at the campaign's test, the first first; see [campaign.ResultStore].
func (s Campaigns) Decisions(ctx context.Context, id int64) ([]campaign.TestDecision, error) {
	rows := pg.Rows(ctx, s.Pool, `select look, at, winner, arms from campaign_decisions where campaign_id = $1 order by look`, id)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d campaign.TestDecision, err error) {
		err = row.Scan(&d.Look, &d.At, &d.Winner, &d.Arms)
		return d, err
	})
	return list, pg.Translate(err)
}
