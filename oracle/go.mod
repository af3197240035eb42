module coldplane/oracle

go 1.26.0
