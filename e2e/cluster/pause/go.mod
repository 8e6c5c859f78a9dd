module headroom.dev/pause

go 1.26.0
