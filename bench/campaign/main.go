// Campaign measures how long it takes from a campaign's start until its
// audience is cut, delivered over the app channel and accounted for, through a
// real worker, and compares it with the floor: streaming the same user ids out
// of PostgreSQL.
//
//	go run ./bench/campaign -n 1000000 -runs 3
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/adapters/redis"
	"dropbell/bench/stack"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

func main() {
	n := flag.Int("n", 1_000_000, "users in the audience")
	runs := flag.Int("runs", 3, "repetitions")
	flag.Parse()
	if err := bench(context.Background(), *n, *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, n, runs int) error {
	s, err := stack.Start(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.SQL.Exec(ctx, `insert into users (id) select i from generate_series(1, $1::bigint) as i`, n); err != nil {
		return err
	}
	if _, err := s.SQL.Exec(ctx, `vacuum analyze users`); err != nil {
		return err
	}
	worker, err := s.StartProgram(ctx, "worker")
	if err != nil {
		return err
	}
	defer worker.Stop()
	client, err := s.RedisClient()
	if err != nil {
		return err
	}
	defer client.Close()
	service := &campaign.Service{Store: postgres.NewCampaigns(s.DB), Latch: redis.NewLatch(client), Templates: postgres.NewTemplates(s.DB),
		Users: &user.Service{Store: postgres.NewUsers(s.DB)}, Channels: delivery.ChannelSetOf(delivery.App), Audiences: campaign.AudienceKinds(), Now: now}
	fmt.Println(stack.Machine(ctx, s))
	fmt.Printf("%10s %8s %8s %10s %12s %10s\n", "users", "floor", "cut", "accounted", "per second", "all/floor")
	var ratios []float64
	for i := range runs {
		ratio, err := once(ctx, s, service, n, i)
		if err != nil {
			return err
		}
		ratios = append(ratios, ratio)
	}
	fmt.Printf("median of all/floor: %.2f\n", stack.Median(ratios))
	return nil
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func once(ctx context.Context, s *stack.Stack, service *campaign.Service, n, run int) (float64, error) {
	floor, err := stream(ctx, s, n)
	if err != nil {
		return 0, err
	}
	spec := campaign.Spec{Name: fmt.Sprintf("Bench %d", run), Channel: delivery.App, Audience: campaign.Audience{Kind: campaign.Everybody},
		Content:  delivery.Copy{Variants: []delivery.Variant{{Percent: 100, Texts: map[string]delivery.Text{"": {Title: "t", Body: "b"}}}}},
		StartsAt: now().Add(3 * time.Second), EndsAt: now().Add(time.Hour)}
	c, err := service.Create(ctx, staff.System(), spec, "")
	if err != nil {
		return 0, err
	}
	if _, err := service.Do(ctx, staff.System(), c.ID, 0, campaign.Publishing, ""); err != nil {
		return 0, err
	}
	var cut, all float64
	err = stack.Until(ctx, 50*time.Millisecond, func() (done bool, err error) {
		err = s.SQL.QueryRow(ctx, `select settled_at is not null, coalesce(extract(epoch from cut_at - started_at), 0),
			coalesce(extract(epoch from (select max(finished_at) from batches b where b.kind = 'campaign' and b.owner_id = c.id) - started_at), 0)
			from campaigns c where id = $1`, c.ID).Scan(&done, &cut, &all)
		return done, err
	})
	if err != nil {
		return 0, err
	}
	b, err := service.Balance(ctx, staff.System(), c.ID)
	if err != nil {
		return 0, err
	}
	if b.Difference() != 0 || b.Counted.Sent != int64(n) {
		return 0, fmt.Errorf("the account does not add up: %+v", b)
	}
	fmt.Printf("%10d %7.2fs %7.2fs %9.2fs %12.0f %10.2f\n", n, floor.Seconds(), cut, all, float64(n)/all, all/floor.Seconds())
	return all / floor.Seconds(), nil
}

// stream reads the ids as the cutter must.
func stream(ctx context.Context, s *stack.Stack, n int) (time.Duration, error) {
	start := time.Now()
	rows, err := s.SQL.Query(ctx, `select id from users where id > 0 order by id`)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		seen++
	}
	if seen != n {
		return 0, fmt.Errorf("%d of %d users were read", seen, n)
	}
	return time.Since(start), rows.Err()
}
