package program

import (
	"github.com/go-chi/chi/v5"

	"dropbell/web/api"
	"dropbell/web/components"
	"dropbell/web/middleware"
)

// mountShop serves what pages of shops use: the API, which SHOP_ORIGINS opens to
// them as far as it is for end users, and the web components.
func (p *program) mountShop(r chi.Router, apiHandler *api.API) {
	const base = "/api/v1"
	r.With(middleware.CORS(p.Config.ShopOrigins, base+"/admin")).Mount(base, apiHandler)
	r.Method("GET", components.Path, components.New())
}
