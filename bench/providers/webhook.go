package main

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

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

const (
	webhookSecret = "whsec_YSBzZWNyZXQgdGhhdCBvbmx5IHRoaXMgYmVuY2htYXJrIGtub3dz"
	// What the worker does at most: batches in hand times calls per batch.
	webhookParallel = 40
	webhookChunk    = 100
)

func hooks(n int) trial {
	return trial{name: "webhook", channel: delivery.Webhook, n: n, peer: postAll, env: func(addr string) []string {
		return []string{"WEBHOOK_URL=http://" + addr + "/", "WEBHOOK_SECRET=" + webhookSecret}
	}}
}

// postAll renders every body before the first is posted.
func postAll(ctx context.Context, addr string, about delivery.Subject, n int) error {
	signer, err := standardwebhooks.NewWebhook(webhookSecret)
	if err != nil {
		return err
	}
	bodies, err := render(about, n)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: webhookParallel}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	errs := make([]error, webhookParallel)
	var all sync.WaitGroup
	for g := range webhookParallel {
		all.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(bodies) && errs[g] == nil; i = next.Add(1) - 1 {
				errs[g] = post(ctx, client, signer, "http://"+addr+"/", "msg_"+strconv.FormatInt(i, 10), bodies[i])
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// render returns the bodies the worker would post, all but the spelling of the key.
func render(about delivery.Subject, n int) ([][]byte, error) {
	type message struct {
		UserID         string        `json:"user_id"`
		TemplateID     string        `json:"template_id"`
		Kind           delivery.Kind `json:"kind"`
		Slot           int           `json:"slot"`
		Title          string        `json:"title"`
		Text           string        `json:"text"`
		IdempotencyKey string        `json:"idempotency_key"`
	}
	contents := [2]delivery.Content{delivery.Render(about, "zh-CN", time.UTC), delivery.Render(about, "en", time.UTC)}
	var bodies [][]byte
	for first := 1; first <= n; first += webhookChunk {
		var list []message
		for id := first; id < min(n+1, first+webhookChunk); id++ {
			m := delivery.Message{To: user.User{ID: user.ID(id)}, Channel: delivery.Webhook, Subject: &about}
			c := contents[id%2]
			list = append(list, message{strconv.Itoa(id), strconv.FormatInt(about.TemplateID, 10), about.Kind, about.Slot, c.Title, c.Text, m.IdempotencyKey()})
		}
		body, err := json.Marshal(map[string]any{"messages": list})
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}

func post(ctx context.Context, client *http.Client, signer *standardwebhooks.Webhook, url, id string, body []byte) error {
	now := time.Now()
	signature, err := signer.Sign(id, now, body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(standardwebhooks.HeaderWebhookID, id)
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
