package program

import (
	"strings"

	"github.com/go-chi/chi/v5"

	"dropbell/web/api"
	"dropbell/web/components"
	"dropbell/web/middleware"
)

// mountShop serves the API, whose operations for end users SHOP_ORIGINS opens to pages of shops,
// the web components and their service worker.
func (p *program) mountShop(r chi.Router, apiHandler *api.API) {
	rehearsals := &worlds{program: p, api: apiHandler}
	p.OnClose(rehearsals.Close)
	r.With(middleware.CORS(p.Config.ShopOrigins, isForServers)).Mount(apiBase, rehearsals)
	r.Method("GET", components.Path, components.New())
	r.Method("GET", components.PushPath, components.NewPush())
}

const apiBase = "/api/v1"

// isForServers reports whether the path is for staff or payment. Their service keys must not be
// used in pages.
func isForServers(path string) bool {
	rest := strings.TrimPrefix(path, apiBase)
	coupon, isCoupon := strings.CutPrefix(rest, "/coupons/")
	_, step, _ := strings.Cut(coupon, "/")
	return strings.HasPrefix(rest, "/admin") || isCoupon && step != "" && step != "pass" && step != "pass.pkpass" // a step of payment
}
