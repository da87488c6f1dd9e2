package coupons

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"dropbell/web/api/pipeline"
	walletweb "dropbell/web/wallet"
)

// CouponPass is where a phone gets the pass of a coupon.
type CouponPass struct {
	AppleURL  string     `json:"apple_url,omitempty" doc:"Opens the pass in Apple's Wallet, without credentials, until apple_until. Absent where Apple's Wallet is not configured." example:"https://drops.example.com/wallet/passes/AAAA.pkpass"`
	AppleEnds *time.Time `json:"apple_until,omitempty" doc:"When apple_url ends." example:"2027-01-01T13:00:00Z"`
	GoogleURL string     `json:"google_url,omitempty" doc:"Saves the pass to Google Wallet. Absent where Google Wallet is not configured." example:"https://pay.google.com/gp/v/save/eyJ…"`
}

type passAnswer struct{ Body CouponPass }

type passFile struct {
	Status       int
	Type         string `header:"Content-Type"`
	Disposition  string `header:"Content-Disposition"`
	ETag         string `header:"ETag"`
	LastModified string `header:"Last-Modified"`
	Body         []byte
}

func (h *handlers) passRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/coupons/{id}/pass", ID: "get-coupon-pass", Summary: "Show where a coupon's pass is", Description: "Links that put the coupon into the wallet of a phone. The pass changes when the coupon is locked, used, released, refunded, expired or revoked.",
		Codes: []string{"coupon_not_found", "wallet_not_configured"}}, pipeline.ByID(func(ctx context.Context, id int64) (*passAnswer, error) {
		l, err := h.Passes.Links(ctx, pipeline.UserOf(ctx), id)
		if err != nil {
			return nil, err
		}
		answer := &passAnswer{CouponPass{AppleURL: l.Apple, GoogleURL: l.Google}}
		if l.Apple != "" {
			answer.Body.AppleEnds = pipeline.UTC(&l.Until)
		}
		return answer, nil
	}))
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/coupons/{id}/pass.pkpass", ID: "get-coupon-pkpass", Summary: "Get a coupon's pass for Apple's Wallet", Description: "A signed pass, which an app adds with PKAddPassesViewController. If-None-Match and If-Modified-Since are honoured.",
		Also: map[int]string{http.StatusNotModified: "The pass is the one that the caller has."}, Codes: []string{"coupon_not_found", "wallet_not_configured"},
		File: walletweb.Type, FileText: "The pass.", Complete: func(op *huma.Operation) {
			op.Responses["200"].Content[walletweb.Type].Schema.Format = "binary"
		}}, h.passFile)
}

func (h *handlers) passFile(ctx context.Context, in *struct {
	pipeline.Ref
	IfNoneMatch     string `header:"If-None-Match"`
	IfModifiedSince string `header:"If-Modified-Since"`
}) (*passFile, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	file, err := h.Passes.File(ctx, pipeline.UserOf(ctx), id)
	if err != nil {
		return nil, err
	}
	answer := &passFile{Status: http.StatusOK, ETag: walletweb.ETag(file), LastModified: file.Pass.Modified.Format(http.TimeFormat)}
	if walletweb.Unchanged(file, in.IfNoneMatch, in.IfModifiedSince) {
		answer.Status = http.StatusNotModified
		return answer, nil
	}
	answer.Type, answer.Disposition = walletweb.Type, `attachment; filename="coupon-`+in.ID+`.pkpass"`
	answer.Body, err = file.Bundle()
	return answer, err
}
