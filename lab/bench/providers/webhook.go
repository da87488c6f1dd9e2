package providers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

const (
	webhookSecret = "whsec_YSBzZWNyZXQgdGhhdCBvbmx5IHRoaXMgYmVuY2htYXJrIGtub3dz"
	// The worker's maximum of concurrent calls: batches in hand times calls per batch.
	webhookParallel = 40
	webhookChunk    = 100
)

func hooks(n int) trial {
	return trial{name: "webhook", channel: delivery.Webhook, n: n, loops: []loop{{"bare loop", postReady}, {"rendering loop", postRendering}, {"reading loop", postReading}},
		ours: []string{reminders, plain, linked},
		env: func(addr string) []string {
			return []string{"WEBHOOK_URL=http://" + addr + "/", "WEBHOOK_SECRET=" + webhookSecret, "LINK_SECRET=only this benchmark signs links with it"}
		}}
}

// postReady renders every body before the first is posted.
func postReady(ctx context.Context, j job) error {
	texts := j.texts()
	var bodies [][]byte
	for first := 1; first <= j.n; first += webhookChunk {
		body, err := render(j.about, first, j.locales(first), texts)
		if err != nil {
			return err
		}
		bodies = append(bodies, body)
	}
	return postAll(ctx, j, func(i int) ([]byte, error) { return bodies[i], nil })
}

// postRendering renders each chunk before it sends it. It need not read the users of the chunk.
func postRendering(ctx context.Context, j job) error {
	texts := j.texts()
	return postAll(ctx, j, func(i int) ([]byte, error) {
		first := i*webhookChunk + 1
		return render(j.about, first, j.locales(first), texts)
	})
}

// postReading reads a chunk's recipients and renders for them when their turn comes.
func postReading(ctx context.Context, j job) error {
	texts := j.texts()
	return postAll(ctx, j, func(i int) ([]byte, error) {
		first := i*webhookChunk + 1
		rows, err := j.stack.SQL.Query(ctx, `select locale from users where id between $1 and $2 order by id`, first, min(j.n, first+webhookChunk-1))
		if err != nil {
			return nil, err
		}
		locales, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, err
		}
		return render(j.about, first, locales, texts)
	})
}

// languages are the languages of users 2, 4, 6… and of users 1, 3, 5….
var languages = [2]string{"en", "zh-CN"}

// locales are the languages of the users of the chunk that begins with first.
func (j job) locales(first int) []string {
	list := make([]string, min(webhookChunk, j.n-first+1))
	for i := range list {
		list[i] = languages[(first+i)%2]
	}
	return list
}

// texts are the texts of the message, by language.
func (j job) texts() map[string]delivery.Content {
	m := map[string]delivery.Content{}
	for _, l := range languages {
		m[l] = delivery.Render(nil, j.about, delivery.Webhook, user.User{Locale: l})
	}
	return m
}

// postAll posts the body of every chunk from as many goroutines as the worker has.
func postAll(ctx context.Context, j job, body func(i int) ([]byte, error)) error {
	signer, err := standardwebhooks.NewWebhook(webhookSecret)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: webhookParallel}}
	defer client.CloseIdleConnections()
	chunks := int64((j.n + webhookChunk - 1) / webhookChunk)
	var next atomic.Int64
	errs := make([]error, webhookParallel)
	var all sync.WaitGroup
	for g := range webhookParallel {
		all.Go(func() {
			for i := next.Add(1) - 1; i < chunks && errs[g] == nil; i = next.Add(1) - 1 {
				b, err := body(int(i))
				if err == nil {
					err = post(ctx, client, signer, call{"http://" + j.addr + "/", "msg_" + strconv.FormatInt(i, 10), b})
				}
				errs[g] = err
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// render returns the body that the worker would post to the users from first on, whose languages
// are locales. Like most programs it uses encoding/json.
func render(about delivery.Subject, first int, locales []string, texts map[string]delivery.Content) ([]byte, error) {
	type message struct {
		UserID         string        `json:"user_id"`
		TemplateID     string        `json:"template_id"`
		Kind           delivery.Kind `json:"kind"`
		Slot           int           `json:"slot"`
		Title          string        `json:"title"`
		Text           string        `json:"text"`
		IdempotencyKey string        `json:"idempotency_key"`
	}
	list := make([]message, len(locales))
	for i, locale := range locales {
		c, m := texts[locale], delivery.Message{To: &user.User{ID: user.ID(first + i)}, Channel: delivery.Webhook, Subject: &about}
		list[i] = message{m.To.ID.String(), strconv.FormatInt(about.TemplateID, 10), about.Kind, about.Slot, c.Title, c.Text, m.IdempotencyKey()}
	}
	return json.Marshal(map[string]any{"messages": list})
}

// call is one POST.
type call struct {
	url, id string
	body    []byte
}

func post(ctx context.Context, client *http.Client, signer *standardwebhooks.Webhook, c call) error {
	now := time.Now()
	signature, err := signer.Sign(c.id, now, c.body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(c.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(standardwebhooks.HeaderWebhookID, c.id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the endpoint answered %s", resp.Status)
	}
	return nil
}
